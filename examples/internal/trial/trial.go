// Package trial is what the tests of the examples share: a datawait built from this tree, and a Python to train with.
package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Binary is the datawait that Main built.
var Binary string

// Main builds datawait, runs the tests and returns their exit code.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "datawait-trial-")
	if err == nil {
		defer os.RemoveAll(dir)
		Binary = filepath.Join(dir, "datawait")
		var output []byte
		if output, err = exec.Command("go", "build", "-o", Binary, "github.com/datawait/datawait/cmd/datawait").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, output)
		}
	}
	if err == nil { // what the examples predict is no track record of whoever runs the tests
		err = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building datawait:", err)
		return 1
	}
	return m.Run()
}

// latest names the environment variable that names a Python with the newest PyTorch and the frameworks people train with.
const latest = "DATAWAIT_LATEST_PYTHON"

// known are the Pythons that were looked for: importing PyTorch to see whether it is there takes a second and more.
var known sync.Map

// Python returns a Python that has these modules. None is a failure: the example would go untested.
func Python(t *testing.T, modules string) string {
	t.Helper()
	if p, ok := known.Load(modules); ok {
		return p.(string)
	}
	for _, p := range []string{os.Getenv("DATAWAIT_PYTHON"), "python3", "/usr/bin/python3", os.Getenv(latest)} {
		if has(p, modules) {
			known.Store(modules, p)
			return p
		}
	}
	t.Fatalf("no Python with %s here; `make setup` installs one", modules)
	return ""
}

// Latest returns the Python with the newest PyTorch, if it has these modules. Where nobody names one the test is skipped, and
// fails in CI: there it would go untested for ever.
func Latest(t *testing.T, modules string) string {
	t.Helper()
	p := os.Getenv(latest)
	switch {
	case p == "" && os.Getenv("CI") == "true":
		t.Fatalf("%s is not set: `make test-latest-torch` sets it, and CI must run that", latest)
	case p == "":
		t.Skipf("NOT TESTED: %s is not set; `make test-latest-torch` installs the frameworks and sets it", latest)
	case !finds(p, modules):
		t.Fatalf("%s=%s has no %s; `make test-latest-torch` installs it", latest, p, modules)
	}
	return p
}

// finds reports whether the modules are installed. Importing a framework to know that takes as long as a short job.
func finds(python, modules string) bool {
	const look = "import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, sys.argv[1].split(', '))))"
	return exec.Command(python, "-c", look, modules).Run() == nil
}

func has(python, modules string) bool {
	return python != "" && exec.Command(python, "-c", "import "+modules).Run() == nil
}

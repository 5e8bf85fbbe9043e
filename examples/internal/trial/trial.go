// Package trial is what the tests of the examples share: a datawait built from this tree, and a Python to train with.
package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	if err != nil {
		fmt.Fprintln(os.Stderr, "building datawait:", err)
		return 1
	}
	return m.Run()
}

// Python returns a Python that has these modules. None is a failure: the example would go untested.
func Python(t *testing.T, modules string) string {
	t.Helper()
	for _, p := range []string{os.Getenv("DATAWAIT_PYTHON"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.Command(p, "-c", "import "+modules).Run() == nil {
			return p
		}
	}
	t.Fatalf("no Python with %s here; `make setup` installs one", modules)
	return ""
}

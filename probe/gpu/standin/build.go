package standin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// library is one of the libraries: where its headers are and what it is made of.
type library struct{ name, module, headers, files string }

var libraries = []library{
	{"libdcgm.so.4", "github.com/NVIDIA/go-dcgm", "pkg/dcgm", "dcgm.c dcgm_values.c"},
	{"libnvidia-ml.so.1", "github.com/NVIDIA/go-nvml", "pkg/nvml", "nvml.c"},
}

// made is the folder that build made, "" before.
var made string

// build compiles both libraries, once per process.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "datawait-standin-")
	if err != nil {
		return "", err
	}
	made = dir
	return dir, compile(dir)
})

// compile makes the libraries in a folder, without some of their functions.
func compile(dir string, without ...string) error {
	source, err := output("go", "list", "-f", "{{.Dir}}", "github.com/datawait/datawait/probe/gpu/standin")
	if err != nil {
		return err
	}
	for _, l := range libraries {
		module, err := output("go", "list", "-m", "-f", "{{.Dir}}", l.module)
		if err != nil {
			return err
		}
		args := []string{"-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
			"-shared", "-fPIC", "-I", filepath.Join(module, l.headers), "-o", filepath.Join(dir, l.name)}
		for _, function := range without { // it is there under a name that nobody asks for
			args = append(args, fmt.Sprintf("-D%s=removed_%[1]s", function))
		}
		for _, file := range strings.Fields(l.files + " scenario.c busylog.c") {
			args = append(args, filepath.Join(source, "csrc", file))
		}
		if _, err := output("gcc", append(args, "-lm", "-lpthread")...); err != nil {
			return err
		}
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Libraries returns the folder of the libraries. It needs gcc.
func Libraries(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatalf("building the stand-in libraries: %v", err)
	}
	return dir
}

// Without returns the folder of libraries that lack some functions, as those of an older driver or engine do.
func Without(t testing.TB, functions ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := compile(dir, functions...); err != nil {
		t.Fatalf("building the stand-in libraries: %v", err)
	}
	return dir
}

// Remove deletes the libraries; for TestMain, after the tests.
func Remove() {
	if made != "" {
		os.RemoveAll(made)
	}
}

package traps

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// newest is the Python of the environment with the newest PyTorch (`make test-latest-torch`), where that is installed.
func newest(t *testing.T) []string {
	t.Helper()
	python := absolute(t, "../../.cache/torch-latest/bin/python")
	if _, err := os.Stat(python); err != nil {
		t.Log("NOT TRIED with the newest PyTorch: it is not installed here, `.ci/torch-latest` does that")
		return nil
	}
	return []string{python}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func itoa(n int) string { return strconv.Itoa(n) }

// TestMain's binary and these scripts write nothing beside the sources.
func init() { os.Setenv("PYTHONDONTWRITEBYTECODE", "1") }

package traps

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

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

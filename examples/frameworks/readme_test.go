package frameworks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table of the README names every job, and no other.
func TestReadmeNamesEveryJob(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("train_*.py")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no jobs here: %v", err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| ") && strings.Contains(line, ".py`") {
			rows++
		}
	}
	for _, script := range scripts {
		if !strings.Contains(string(text), "| `"+script+"` |") {
			t.Errorf("%s has no row", script)
		}
	}
	if rows != len(scripts) {
		t.Errorf("%d rows for %d jobs", rows, len(scripts))
	}
}

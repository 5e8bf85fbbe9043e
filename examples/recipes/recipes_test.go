// Package recipes runs every recipe and has it prove what it claims.
package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/examples/internal/trial"
)

// scripts are the recipes of this folder.
func scripts(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.py")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recipes here: %v", err)
	}
	return names
}

// A recipe proves each of its claims and then runs as its reader would run it. Two at a time: most of it is importing.
func TestRecipesHoldWhatTheyClaim(t *testing.T) {
	python := trial.Python(t, "torch, numpy, PIL")
	for _, script := range scripts(t) {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			output, err := exec.Command(python, script, "--check").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			proven, shown := 0, 0
			for line := range strings.Lines(string(output)) {
				if strings.HasPrefix(line, "holds: ") {
					proven++
				} else {
					shown++
				}
			}
			if proven < 4 || shown == 0 {
				t.Errorf("%d claims proven, %d lines of what it does:\n%s", proven, shown, output)
			}
		})
	}
}

// The README tells of each recipe which fixes it is for, and these are the ones that reports name it for.
func TestReadmeNamesTheFixesOfEachRecipe(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], ".py") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(cells[1]), "["), "]")
		told["examples/recipes/"+name] = strings.Split(strings.TrimSpace(cells[2]), ", ")
	}
	want := map[string][]string{}
	for _, id := range fixes.IDs() {
		if r := fixes.Recipe(id); r != "" {
			want[r] = append(want[r], id)
		}
	}
	for recipe, ids := range want {
		got := slices.Clone(told[recipe])
		slices.Sort(ids)
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			t.Errorf("%s is for %q; the README says %q", recipe, ids, got)
		}
	}
	if len(told) != len(want) {
		t.Errorf("%d rows for %d recipes", len(told), len(want))
	}
}

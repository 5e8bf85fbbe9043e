package fixes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every recipe that a fix names is there, and every one that is there is named.
func TestRecipesAreThoseOfTheExamples(t *testing.T) {
	scripts, err := filepath.Glob("../../examples/recipes/*.py")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no recipes here: %v", err)
	}
	named := map[string]bool{}
	for id := range recipes {
		if !slices.Contains(IDs(), id) {
			t.Errorf("%q is no fix", id)
		}
		named[Recipe(id)] = true
		if _, err := os.Stat("../../" + Recipe(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, script := range scripts {
		if name, _ := filepath.Rel("../..", script); !named[filepath.ToSlash(name)] {
			t.Errorf("no fix names %s", name)
		}
	}
}

// A fix brings its recipe along, priced or not.
func TestFixesBringTheirRecipe(t *testing.T) {
	j := &job{}
	if f := j.fix(priced{rule: rule{id: ShardFiles}}); f.Recipe != "examples/recipes/pack_shards.py" {
		t.Errorf("recipe %q", f.Recipe)
	}
	if f := j.fix(priced{rule: rule{id: MoreGPUs}}); f.Recipe != "" {
		t.Errorf("recipe %q of a fix that has none", f.Recipe)
	}
}

package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The linker is asked for both kinds, so what is read of the file is what it was told.
func TestAnExecutableTellsWhenItBinds(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	if err := os.WriteFile(source, []byte("int main(void){return 0;}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]bool{"-Wl,-z,now": true, "-Wl,-z,lazy": false} {
		path := filepath.Join(dir, "a"+strings.TrimPrefix(flag, "-Wl,-z,"))
		if out, err := exec.Command("gcc", flag, "-o", path, source).CombinedOutput(); err != nil {
			t.Fatalf("gcc, which the stand-in libraries need too: %v\n%s", err, out)
		}
		if LinkedNow(path) != want {
			t.Errorf("%s: bound at the start: %v", flag, !want)
		}
	}
}

func TestAChildIsNotToldToBindAtTheStart(t *testing.T) {
	t.Setenv("LD_BIND_NOW", "1")
	if env := LazyEnvironment(); slices.Contains(env, "LD_BIND_NOW=1") || len(env) != len(os.Environ())-1 {
		t.Errorf("%q", env)
	}
	if why := BoundAtOnce(); !strings.Contains(why, "LD_BIND_NOW is set") {
		t.Errorf("reason %q", why)
	}
}

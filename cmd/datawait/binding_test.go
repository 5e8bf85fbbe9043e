package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// made builds datawait as `make build` does, with a further flag of the linker.
func made(t *testing.T, linker string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "datawait")
	atRoot(t, "go", "build", "-trimpath", "-ldflags", "-s -w -extldflags="+linker, "-o", path, "./cmd/datawait")
	return path
}

func weaken(t *testing.T, path string) {
	t.Helper()
	atRoot(t, "go", "run", ".ci/weaken.go", path)
}

// atRoot runs a command in the root of the repository.
func atRoot(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
}

// TestTheBinaryStartsWhereSymbolsAreBoundAtOnce: a process whose undefined symbols are all looked up at its start ends before it could
// say anything, and so would a job under it.
func TestTheBinaryStartsWhereSymbolsAreBoundAtOnce(t *testing.T) {
	t.Setenv("LD_BIND_NOW", "1")
	lazy := made(t, "-Wl,-z,lazy")
	if err := exec.Command(lazy, "version").Run(); err == nil {
		t.Error("it starts as the linker makes it: there is nothing to weaken any more")
	}
	weaken(t, lazy)
	weaken(t, lazy) // as a second make build does, which links nothing
	t.Run("and counts where only its environment asks for that", func(t *testing.T) {
		report, said := recordBy(t, lazy, standin.A100(0, "sm=0.42 resident=0.9")+standin.Groups, "dcgm=ENGINE", training)
		sm, _ := report["gpus"].([]any)[0].(map[string]any)["sm_active_ratio"].(map[string]any)
		if sm == nil || sm["value"].(float64) < 0.41 {
			t.Errorf("SM activity %v\n%s", sm, said)
		}
	})
	t.Run("and says why it does not count where it was linked so", func(t *testing.T) {
		os.Unsetenv("LD_BIND_NOW")
		now := made(t, "-Wl,-z,now")
		weaken(t, now)
		_, said := recordBy(t, now, standin.A100(0, "sm=0.42")+standin.Groups, "dcgm=ENGINE", training)
		if !strings.Contains(unwrapped(said), "linked with -z now") {
			t.Error(said)
		}
	})
}

// Package gpucheck holds datawait against a GPU that does known work (check.py, run by make gpu-check). Its test lets the check check
// itself on the emulated device.
package gpucheck

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

func TestMain(m *testing.M) { os.Exit(trial.Main(m)) }

type result struct {
	Emulated bool
	Checks   []struct {
		Check    string
		Measured any
		Holds    bool
	}
}

func check(t *testing.T, python string, arguments ...string) (r result, said string, status int) {
	t.Helper()
	cmd := exec.Command(python, append([]string{"check.py", "--datawait", trial.Binary}, arguments...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	return r, stderr.String(), cmd.ProcessState.ExitCode()
}

func TestTheCheckHoldsOnTheEmulatedDevice(t *testing.T) {
	r, said, status := check(t, trial.Python(t, "sys"), "--device", "emulated", "--seconds", "2")
	if status != 0 || !r.Emulated || len(r.Checks) != 8 {
		t.Errorf("status %d, %+v\n%s", status, r, said)
	}
	for _, c := range r.Checks {
		if !c.Holds {
			t.Errorf("%+v", c)
		}
	}
}

// Nothing checked is no success.
func TestWithoutAGPUNothingIsChecked(t *testing.T) {
	python := trial.Python(t, "torch")
	if exec.Command(python, "-c", "import sys, torch; sys.exit(torch.cuda.is_available())").Run() != nil {
		t.Skip("there is a GPU here: make gpu-check checks it")
	}
	if _, said, status := check(t, python); status != 3 || !strings.Contains(said, "nothing was checked") {
		t.Errorf("status %d: %s", status, said)
	}
}

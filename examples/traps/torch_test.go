package traps

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

// Steps are counted in the PyTorch that all these tests use, the oldest that is supported where the system's is Debian 12 …
func TestStepsAreCounted(t *testing.T) {
	if r := shared(t, nil, "outside.py", "--optimizer", "yes"); r.report.Job.Steps != r.truth.Steps || r.truth.Steps == 0 {
		t.Errorf("%d steps, the script made %d", r.report.Job.Steps, r.truth.Steps)
	}
}

// … and in the newest (`make test-latest-torch`).
func TestLatestStepsAreCounted(t *testing.T) {
	python, dir := trial.Latest(t, "torch"), t.TempDir()
	out, own := filepath.Join(dir, "out"), filepath.Join(dir, "truth.json")
	command := exec.Command(trial.Binary, "record", "-q", "--format", "json", "--out", out, "--", python, "outside.py", "--truth", own)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var r report
	var seen truth
	read(t, filepath.Join(out, "report.json"), &r)
	if read(t, own, &seen); r.Job.Steps != seen.Steps || seen.Steps == 0 {
		t.Errorf("%d steps, the script made %d", r.Job.Steps, seen.Steps)
	}
}

// torchrun ends at once when a rank fails at its start. (PyTorch 1.13's does not start at all on Python 3.11.)
func TestLatestTorchrunEndsWithItsRank(t *testing.T) {
	line := []string{trial.Latest(t, "torch"), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "crash.py", "--at", "start"}
	if _, status := launched(t, observed(t, line)); status != 1 {
		t.Errorf("status %d", status)
	}
}

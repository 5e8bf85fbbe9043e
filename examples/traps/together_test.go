package traps

import (
	"bytes"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

// Two runs of one script that begin together, in one folder, each get a report of their own, with their own numbers and status.
func TestTwoRunsAtOnceAreTwoRuns(t *testing.T) {
	dir, jobs := t.TempDir(), []string{"2", "9"} // ms of waiting in a step
	var all sync.WaitGroup
	for range 2 {
		for _, wait := range jobs {
			all.Go(func() { side(t, dir, nil, wait) })
		}
		all.Wait()
	}
	folders, _ := filepath.Glob(filepath.Join(dir, "datawait-together-*"))
	if len(folders) != 4 {
		t.Fatalf("four runs left %d folders: %q", len(folders), folders)
	}
	seen := map[string]int{}
	for _, folder := range folders {
		var r struct {
			report
			Job struct {
				Command []string `json:"command"`
			} `json:"job"`
			ExitCode *int `json:"exit_code"`
		}
		read(t, filepath.Join(folder, "report.json"), &r)
		wait := r.Job.Command[len(r.Job.Command)-1]
		var own truth
		read(t, filepath.Join(dir, "truth-"+wait+".json"), &own) // of the last of the two: they are alike
		near(t, "the share of data wait of the run with "+wait+" ms", r.Step.Share, own.Share, 0.1)
		if r.ExitCode == nil || len(r.Ranks) != 1 || r.Ranks[0].Steps != own.Steps || (wait == "9") != (*r.ExitCode == 9) {
			t.Errorf("the run with %s ms: exit code %v, ranks %+v", wait, r.ExitCode, r.Ranks)
		}
		seen[wait]++
	}
	if seen["2"] != 2 || seen["9"] != 2 {
		t.Errorf("of two runs each, %v were kept", seen)
	}
}

// Two runs that are told to write to the same folder: one does, the other is refused, says so and runs nothing.
func TestTwoRunsDoNotShareAFolder(t *testing.T) {
	for _, force := range []bool{false, true} {
		dir := t.TempDir()
		flags := []string{"--out", "same"}
		if force {
			flags = append(flags, "--force")
		}
		var all sync.WaitGroup
		said := make([]string, 2)
		for i, wait := range []string{"2", "9"} {
			all.Go(func() { said[i] = side(t, dir, flags, wait) })
		}
		all.Wait()
		refused := 0
		for _, text := range said {
			if strings.HasPrefix(text, "error: ") && strings.Contains(text, "\nhint: ") {
				refused++
			}
		}
		truths, _ := filepath.Glob(filepath.Join(dir, "truth-*.json"))
		if refused != 1 || len(truths) != 1 {
			t.Fatalf("force %v: %d runs were refused, %d trained: %q", force, refused, len(truths), said)
		}
		var r report
		var own truth
		read(t, filepath.Join(dir, "same", "report.json"), &r)
		read(t, truths[0], &own)
		near(t, "the share of data wait", r.Step.Share, own.Share, math.Max(shares, 0.1))
	}
}

// side runs together.py beside others in one folder and returns what datawait said.
func side(t *testing.T, dir string, flags []string, wait string) string {
	script, err := filepath.Abs("together.py")
	if err != nil {
		t.Error(err)
	}
	line := append([]string{"record", "--format", "json"}, flags...)
	line = append(line, "--", trial.Python(t, "torch"), script, "--truth", "truth-"+wait+".json", "--wait", wait)
	command := exec.Command(trial.Binary, line...)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	_ = command.Run() // its status is in the report, where there is one
	return stderr.String()
}

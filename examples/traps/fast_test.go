package traps

import (
	"fmt"
	"strings"
	"testing"
)

// Every step of a loop of tens of thousands a second is counted, and nothing is said of them one by one.
func TestFastLoopsAreCountedInFull(t *testing.T) {
	r := recorded(t, nil, "fast.py", "--steps", "100000", "--pause", "15000")
	if r.report.Job.Steps != r.truth.Steps || r.report.Loaders[0].Fetches != r.truth.Steps {
		t.Errorf("%d steps, %d fetches; the script made %d", r.report.Job.Steps, r.report.Loaders[0].Fetches, r.truth.Steps)
	}
	if r.report.Quality.Hook.Dropped != 0 {
		t.Errorf("%d records were dropped with the agent at work", r.report.Quality.Hook.Dropped)
	}
	checkTalk(t, r)
}

// Where records are overwritten before anybody reads them that is said, and steps, fetches and waits are right all the same.
func TestAnOverrunIsSaidAndTotalsAreRight(t *testing.T) {
	r := recorded(t, nil, "fast.py", "--stop", "yes")
	lost := r.report.Quality.Damage.Lost
	if lost == 0 {
		t.Fatal("nothing was overwritten: the test tests nothing")
	}
	if !strings.Contains(strings.Join(r.report.Quality.Warnings, "\n"), fmt.Sprintf("%d records of the hook were overwritten", lost)) {
		t.Errorf("%d records are missing, and the warnings are %q", lost, r.report.Quality.Warnings)
	}
	if r.report.Job.Steps != r.truth.Steps || r.report.Loaders[0].Fetches != r.truth.Steps {
		t.Errorf("%d steps, %d fetches; the script made %d", r.report.Job.Steps, r.report.Loaders[0].Fetches, r.truth.Steps)
	}
	checkTalk(t, r)
}

// os._exit runs nothing that was left for the end. What is lost is at most the last millisecond, and nobody is called killed.
func TestAProcessThatLeavesAtOnceLosesAMillisecond(t *testing.T) {
	r := recorded(t, nil, "fast.py", "--end", "at-once")
	missing := r.truth.Steps - r.report.Job.Steps
	if missing < 0 || missing > r.truth.LastMillisecond {
		t.Errorf("%d of %d steps are missing, %d were made in the last millisecond", missing, r.truth.Steps, r.truth.LastMillisecond)
	}
	if r.status != 0 || r.report.Ranks[0].Ended == "killed" {
		t.Errorf("status %d, ended %s", r.status, r.report.Ranks[0].Ended)
	}
}

// checkTalk allows the lines that every run has: the progress, seldom.
func checkTalk(t *testing.T, r run) {
	t.Helper()
	for line := range strings.Lines(r.stderr) {
		if !strings.HasPrefix(line, "datawait: w") && !strings.HasPrefix(line, "datawait: the training has ended") { // waiting for the first step, watching
			t.Errorf("stderr says %q", line)
		}
	}
	if n := strings.Count(r.stderr, "\n"); n > 20 {
		t.Errorf("%d lines on stderr", n)
	}
}

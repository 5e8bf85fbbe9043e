package lab

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/examples/internal/trial"
	"github.com/datawait/datawait/probe/recording"
)

// results names the environment variable that asks for all scenarios, and says where their table goes.
const results = "DATAWAIT_LAB"

// tries is how often a scenario is run to find the machine quiet.
func tries() int {
	if os.Getenv(results+"_TRIES") == "1" {
		return 1
	}
	return 3
}

// TestLab diagnoses every scenario, makes the change that is ranked first for real, and writes what came of it into a table. A wrong
// answer is a failure; what a busy machine spoiled is skipped, loudly, and stands in the table as inconclusive.
func TestLab(t *testing.T) {
	path := os.Getenv(results)
	if path == "" {
		t.Skipf("NOT RUN: %s is not set; `make lab` sets it (half an hour)", results)
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			r, quiet := diagnoseQuietly(t, s)
			o := outcome{scenario: s, run: r, quiet: quiet, verdict: s.wrongVerdict(r), fix: s.wrongFix(r)}
			o.after = repair(t, s, r)
			if err := write(path, o); err != nil {
				t.Fatal(err)
			}
			t.Logf("verdicts %s, fixes %s, pace %.1f ms, model error %v %s\n%s", r.verdicts(), r.fixes(), 1e3*r.truth.pace, number(r.report.Model.Error), r.report.Model.Reason, r.stdout)
			if !quiet {
				t.Skipf("INCONCLUSIVE: %.2f cores were busy with something else in the last of three tries", r.foreignCores)
			}
			for _, wrong := range []string{o.verdict, o.fix} {
				if wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
}

// outcome is one row of the table.
type outcome struct {
	scenario
	run
	quiet        bool
	verdict, fix string // what is wrong with them
	after        *float64
}

// predicted is the pace that the report promises for its first fix, with the ends of its interval.
func (o outcome) predicted() (value, low, high float64, ok bool) {
	if len(o.report.Fixes) == 0 || o.report.Fixes[0].Predicted.Saved == nil || o.truth.pace == 0 {
		return 0, 0, 0, false
	}
	e := o.report.Fixes[0].Predicted.Saved
	return o.truth.pace * (1 - e.Value), o.truth.pace * (1 - e.High), o.truth.pace * (1 - e.Low), true
}

// repairSteps and repairTime bound the run after a repair: it ends at whichever comes first.
const (
	repairSteps = 400
	repairTime  = 30 * time.Second
)

var workersIn = regexp.MustCompile(`num_workers=(\d+)`)
var prefetchIn = regexp.MustCompile(`prefetch_factor=(\d+)`)

// repair makes the fix that is ranked first for real, and returns the pace by the script's own clock; nil where there is none, or where the
// script cannot make it.
func repair(t *testing.T, s scenario, r run) *float64 {
	t.Helper()
	first := r.firstFix()
	if first == "" || s.unrepaired || r.truth.pace == 0 {
		return nil
	}
	arguments := append([]string{}, s.arguments...)
	how := r.report.Fixes[0].How
	switch workers, prefetch := workersIn.FindStringSubmatch(how), prefetchIn.FindStringSubmatch(how); {
	case (first == "more-workers" || first == "fewer-workers") && workers != nil:
		arguments = append(arguments, "--workers", workers[1])
	case first == "prefetch-factor" && prefetch != nil:
		arguments = append(arguments, "--prefetch", prefetch[1])
	default:
		arguments = append(arguments, "--repair", first)
	}
	return pace(t, s.script, arguments)
}

// pace runs a script without datawait.
func pace(t *testing.T, script string, arguments []string) *float64 {
	t.Helper()
	own := filepath.Join(t.TempDir(), "truth")
	ctx, cancel := context.WithTimeout(t.Context(), repairTime)
	defer cancel()
	arguments = append([]string{script, "--truth", own, "--steps", fmt.Sprint(repairSteps)}, arguments...)
	command := exec.CommandContext(ctx, trial.Python(t, "torch"), arguments...)
	command.Env = append(os.Environ(), "PYTHONPATH=../../probe/hook")
	inGroup(command)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil && ctx.Err() == nil {
		t.Logf("%s cannot make the change: %v\n%s", script, err, strings.TrimSpace(stderr.String()))
		return nil
	}
	if _, err := os.Stat(own); err != nil {
		t.Logf("%s did not begin to train after the change: %v", script, err)
		return nil
	}
	truth := readTruth(t, own, recording.Unknown64, nil)
	if truth.pace == 0 || math.IsNaN(truth.pace) {
		t.Logf("%s made too few steps after the change", script)
		return nil
	}
	return &truth.pace
}

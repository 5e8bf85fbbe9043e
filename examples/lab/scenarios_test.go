// Package lab runs the scenarios with known answers under `datawait diagnose` and compares its report with their arithmetic
// and with the clock each script keeps for itself. A new one is a script whose docstring has the arithmetic, and a row in the table of
// table_test.go; --repair names the fixes that the script can make for real.
package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// asksForWorkers wants the smallest number of workers that keeps up.
func asksForWorkers(n int) func(run) string {
	return func(r run) string {
		if len(r.report.Fixes) == 0 || !strings.Contains(r.report.Fixes[0].How, fmt.Sprintf("num_workers=%d", n)) {
			return fmt.Sprintf("the fix does not ask for num_workers=%d: %+v", n, r.report.Fixes)
		}
		return ""
	}
}

// notCritical refuses any finding about data that claims more than a tenth of the step.
func notCritical(r run) string {
	for _, v := range r.report.Verdicts {
		if v.ID != "compute-bound" && v.ID != "healthy" && v.Share != nil && *v.Share > 0.10 {
			return fmt.Sprintf("a wait of 5 %% is called %s with a share of %.2f", v.ID, *v.Share)
		}
	}
	return ""
}

// finds wants a verdict, wherever it stands.
func finds(id string) func(run) string {
	return func(r run) string {
		if !strings.Contains(", "+r.verdicts()+",", " "+id+",") {
			return "no " + id
		}
		return ""
	}
}

// notCertain wants a fix, where it comes first, to be said to win nothing perhaps: nobody counted kernels, so the work it moves may be launching them.
func notCertain(id string) func(run) string {
	return func(r run) string {
		if r.firstFix() == id && (r.report.Fixes[0].Predicted.Saved == nil || r.report.Fixes[0].Predicted.Saved.Low > 0) {
			return id + " is said to win something for certain"
		}
		return ""
	}
}

// saysNoHelp wants common advice among what will not help.
func saysNoHelp(id string) func(run) string {
	return func(r run) string {
		for _, n := range r.report.NoHelp {
			if n.ID == id {
				return ""
			}
		}
		return id + " is not said to be no help"
	}
}

func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("scenarios train for minutes; not run with -short")
	}
	for _, s := range scenarios {
		if s.gate {
			t.Run(s.name, func(t *testing.T) { checkScenario(t, s) })
		}
	}
}

// checkScenario diagnoses one script. It is tried again when something else used the machine meanwhile; with no quiet moment in
// three tries nothing can be concluded, neither for datawait nor against it, and that is said.
func checkScenario(t *testing.T, s scenario) {
	r, quiet := diagnoseQuietly(t, s)
	if !quiet {
		t.Skipf("INCONCLUSIVE: %.2f cores were busy with something else in the last of three tries", r.foreignCores)
	}
	if r.truth.steps == 0 {
		t.Fatal("the script made too few live steps before the test")
	}
	checkWait(t, s, r)
	checkActivity(t, s, r)
	checkLedger(t, r)
	for _, wrong := range []string{s.wrongVerdict(r), s.wrongFix(r)} {
		if wrong != "" {
			t.Error(wrong)
		}
	}
	if t.Failed() {
		t.Logf("the report:\n%s", r.stdout)
	}
}

// diagnoseQuietly diagnoses until nothing else used the machine meanwhile, three times at most, and says whether anything can be concluded.
func diagnoseQuietly(t *testing.T, s scenario) (r run, quiet bool) {
	t.Helper()
	calm, tolerable := 0.5, 0.8 // cores busy with something else: scripts that sleep need little of the two
	if s.burns {
		calm, tolerable = 0.1, 0.3
	}
	for try := range tries() {
		r = diagnose(t, s)
		if r.foreignCores < calm {
			break
		}
		t.Logf("try %d: %.2f cores were busy with something else", try+1, r.foreignCores)
	}
	return r, r.foreignCores <= tolerable
}

// checkWait compares the share of data wait with the script's own clock over the live steps before the test.
func checkWait(t *testing.T, s scenario, r run) {
	tolerance := 0.06
	if s.burns {
		tolerance = 0.12
	}
	if s.name == "S14" { // steady state: epoch starts stand apart, the script's clock has them in
		return
	}
	share := r.report.Step.DataWaitShare
	if share == nil {
		t.Errorf("data wait is unknown; the script's clock says %.3f", r.truth.waitShare)
		return
	}
	if math.Abs(share.Value-r.truth.waitShare) > tolerance {
		t.Errorf("data wait %.3f of a step, the script's clock says %.3f (tolerance %.2f)", share.Value, r.truth.waitShare, tolerance)
	}
}

// checkActivity compares the SM activity of live blocks with the emulated device's own busy time; without blocks, that of
// the time in which the device was held. Start-up is no part of either.
func checkActivity(t *testing.T, s scenario, r run) {
	got, ok := r.liveActivity()
	if !ok {
		t.Errorf("SM activity is unknown: %+v", r.report.GPUs)
		return
	}
	const tolerance = 0.03
	t.Logf("SM activity %.3f, the device's own clock says %.3f; data wait by the script's clock %.3f", got, r.truth.smActive, r.truth.waitShare)
	if math.Abs(got-r.truth.smActive) > tolerance {
		t.Errorf("SM activity %.3f, the device's own clock says %.3f (tolerance %.2f)", got, r.truth.smActive, tolerance)
	}
}

// checkLedger sums the accounts of every GPU.
func checkLedger(t *testing.T, r run) {
	for _, gpu := range r.report.GPUs {
		var sum int64
		for _, ns := range gpu.Accounts {
			sum += ns
		}
		if sum != gpu.Allocated || sum == 0 {
			t.Errorf("accounts sum to %d ns, allocated %d ns", sum, gpu.Allocated)
		}
	}
}

// wrongVerdict says what is wrong with the verdicts; "" = nothing.
func (s scenario) wrongVerdict(r run) string {
	if len(r.report.Verdicts) == 0 || !slices.Contains(s.verdict, r.report.Verdicts[0].ID) {
		return fmt.Sprintf("verdicts %s, want %s first", r.verdicts(), strings.Join(s.verdict, " or "))
	}
	return ""
}

// wrongFix says what is wrong with the fixes, and with what is particular to the scenario; "" = nothing.
func (s scenario) wrongFix(r run) string {
	first := r.firstFix()
	switch {
	case s.fix != nil && !slices.Contains(s.fix, first):
		return fmt.Sprintf("fixes %s, want %q first", r.fixes(), strings.Join(s.fix, " or "))
	case slices.Contains(s.never, first):
		return first + " is ranked first, which helps nothing here"
	case s.also != nil:
		return s.also(r)
	}
	return ""
}

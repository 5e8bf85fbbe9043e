// Package lab runs the scenarios with known answers under `datawait diagnose` and compares its report with their arithmetic
// and with the clock each script keeps for itself.
package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// scenario is one script with what a right report says of it.
type scenario struct {
	name      string
	script    string
	arguments []string
	// burns says that the script burns CPU: shares are held to a wider tolerance, and only on a quiet machine.
	burns bool
	// verdict must be the first one, fix the first fix; "" for a fix means that none may be offered.
	verdict []string
	fix     []string
	// never must not be the first fix.
	never []string
	// also checks what is particular to this scenario.
	also func(*testing.T, run)
}

var scenarios = []scenario{
	{name: "S01", script: "s01_no_workers.py",
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"},
		never: []string{"pin-memory", "persistent-workers", "cheaper-decode", "larger-batch"}},
	{name: "S02 W=1", script: "s02_few_workers.py", arguments: []string{"--workers", "1"},
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"}, also: wantWorkers(3)},
	{name: "S02 W=4", script: "s02_few_workers.py", arguments: []string{"--workers", "4"},
		verdict: []string{"compute-bound", "healthy"}, fix: []string{""}},
	{name: "S02 W=16", script: "s02_few_workers.py", arguments: []string{"--workers", "16"},
		verdict: []string{"compute-bound", "healthy"}, fix: []string{"", "fewer-workers"}},
	{name: "S03", script: "s03_shared_bandwidth.py",
		verdict: []string{"storage-bandwidth"}, fix: []string{"nvme-cache", "parallel-filesystem", "preprocess-once"},
		never: []string{"more-workers", "prefetch-factor"}},
	{name: "S05 W=1", script: "s05_cpu_decode.py", arguments: []string{"--workers", "1"}, burns: true,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers", "preprocess-once"}},
	{name: "S05 W=2", script: "s05_cpu_decode.py", burns: true,
		verdict: []string{"cpu-transform"}, fix: []string{"cheaper-decode", "preprocess-once", "cpu-limit"},
		never: []string{"more-workers", "prefetch-factor", "nvme-cache", "shard-files"}},
	{name: "S10", script: "s10_slow_collate.py", burns: true,
		verdict: []string{"cpu-transform"}, fix: []string{"vectorize-collate"},
		never: []string{"more-workers", "nvme-cache", "augment-on-gpu"}},
	{name: "S14", script: "s14_epoch_start.py",
		verdict: []string{"epoch-start"}, fix: []string{"persistent-workers"},
		never: []string{"more-workers", "nvme-cache"}},
	{name: "S21", script: "s21_main_process.py", burns: true,
		verdict: []string{"main-process"}, fix: []string{"move-off-main"},
		never: []string{"more-workers", "nvme-cache"}},
	{name: "S26", script: "s26_compute_bound.py",
		verdict: []string{"compute-bound"}, fix: []string{""}},
	{name: "S26 marginal", script: "s26_compute_bound.py", arguments: []string{"--marginal"},
		verdict: []string{"compute-bound", "healthy", "too-few-workers"}, also: notCritical},
}

// wantWorkers asks for the smallest number of workers that keeps up.
func wantWorkers(n int) func(*testing.T, run) {
	return func(t *testing.T, r run) {
		if len(r.report.Fixes) == 0 || !strings.Contains(r.report.Fixes[0].How, fmt.Sprintf("num_workers=%d", n)) {
			t.Errorf("the fix does not ask for num_workers=%d: %+v", n, r.report.Fixes)
		}
	}
}

// notCritical refuses any finding about data that claims more than a tenth of the step.
func notCritical(t *testing.T, r run) {
	for _, v := range r.report.Verdicts {
		if v.ID != "compute-bound" && v.ID != "healthy" && v.Share != nil && *v.Share > 0.10 {
			t.Errorf("a wait of 5 %% is called %s with a share of %.2f", v.ID, *v.Share)
		}
	}
}

func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("scenarios train for minutes; not run with -short")
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { checkScenario(t, s) })
	}
}

// checkScenario diagnoses one script. It is tried again when something else used the machine meanwhile; with no quiet moment in
// three tries nothing can be concluded, neither for datawait nor against it, and that is said.
func checkScenario(t *testing.T, s scenario) {
	quiet, tolerable := 0.5, 0.8 // cores busy with something else: scripts that sleep need little of the two
	if s.burns {
		quiet, tolerable = 0.1, 0.3
	}
	var r run
	for try := range 3 {
		r = diagnose(t, s)
		if r.foreignCores < quiet {
			break
		}
		t.Logf("try %d: %.2f cores were busy with something else", try+1, r.foreignCores)
	}
	if r.foreignCores > tolerable {
		t.Skipf("INCONCLUSIVE: %.2f cores were busy with something else in the last of three tries", r.foreignCores)
	}
	checkWait(t, s, r)
	checkActivity(t, s, r)
	checkLedger(t, r)
	checkVerdict(t, s, r)
	checkFix(t, s, r)
	if s.also != nil {
		s.also(t, r)
	}
	if t.Failed() {
		t.Logf("the report:\n%s", r.stdout)
	}
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

func checkVerdict(t *testing.T, s scenario, r run) {
	if len(r.report.Verdicts) == 0 || !slices.Contains(s.verdict, r.report.Verdicts[0].ID) {
		t.Errorf("verdicts %s, want %s first", r.verdicts(), strings.Join(s.verdict, " or "))
	}
}

func checkFix(t *testing.T, s scenario, r run) {
	first := ""
	if len(r.report.Fixes) > 0 {
		first = r.report.Fixes[0].ID
	}
	if s.fix != nil && !slices.Contains(s.fix, first) {
		t.Errorf("fixes %s, want %q first", r.fixes(), strings.Join(s.fix, " or "))
	}
	if slices.Contains(s.never, first) {
		t.Errorf("%s is ranked first, which helps nothing here", first)
	}
}

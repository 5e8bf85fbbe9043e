package fixes

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/replay"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func some[T any](v T) unit.Maybe[T]      { return unit.Some(v) }
func someBool(v bool) unit.Maybe[bool]   { return unit.Some(v) }
func someEst(e stat.Estimate) loader.Est { return unit.Some(e) }
func exact(v float64) loader.Est         { return someEst(stat.Estimate{Value: v, Low: v, High: v, N: 100}) }
func find(r Ranking, id string) (Fix, bool) {
	i := slices.IndexFunc(r.Fixes, func(f Fix) bool { return f.ID == id })
	if i < 0 {
		return Fix{}, false
	}
	return r.Fixes[i], true
}

// advise ranks with few draws: that there are intervals is tested, and five hundred draws take long under the race detector.
func advise(p loader.Parameters) Ranking {
	m := loader.New(p)
	m.Draws = 40
	return Rank(m)
}

// TestUntrusted: a law that misses the step ranks nothing, and the reason is the answer.
func TestUntrusted(t *testing.T) {
	p := scenario.S02(2).Parameters()
	p.Step.Seconds = exact(0.05)
	r := advise(p)
	if len(r.Fixes)+len(r.NoHelp)+len(r.Unpriced)+len(r.Plan) > 0 || !strings.Contains(r.Reason, "nothing is ranked: the replay gives 20.0 ms for a step that took 50.0 ms") {
		t.Errorf("%+v", r)
	}
	if r := advise(loader.Parameters{}); len(r.Fixes) > 0 || r.Reason == "" {
		t.Errorf("nothing known: %+v", r)
	}
}

// TestShortEpochs: no step settles in epochs of four batches, but their start is seen (F16).
func TestShortEpochs(t *testing.T) {
	p := scenario.S14().Parameters()
	p.Step.Seconds, p.Epoch.Batches, p.Epoch.Wall = loader.Est{}, some(4), some(0.44)
	r := advise(p)
	if len(r.Fixes) == 0 || r.Fixes[0].ID != PersistentWorkers {
		t.Fatalf("%v (%s)", ids(r), r.Reason)
	}
	if got := r.Fixes[0].Predicted.StepSavedShare.Or(zero).Value; math.Abs(got-0.3/0.44) > 0.01 {
		t.Errorf("saves %v", got)
	}
	if r.Fixes[0].Predicted.StepSeconds.IsKnown() {
		t.Error("a step was predicted that nobody measured")
	}
}

// TestPlan: each step of the plan is priced in what the one before leaves.
func TestPlan(t *testing.T) {
	r := advise(scenario.S05(1).Parameters())
	want := []PlanStep{{ID: MoreWorkers, StepSeconds: 0.024, BottleneckAfter: "cores"}, {ID: PreprocessOnce, StepSeconds: 0.0111, BottleneckAfter: "compute"}}
	if !slices.EqualFunc(r.Plan, want, func(a, b PlanStep) bool {
		return a.ID == b.ID && a.BottleneckAfter == b.BottleneckAfter && math.Abs(a.StepSeconds-b.StepSeconds) < 1e-5
	}) {
		t.Errorf("%+v", r.Plan)
	}
}

// TestProperties: over random jobs no prediction beats what bounds it, and a plan counts nothing twice.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ranked := 0
	for range 200 {
		j := randomJob(r)
		m := loader.New(j.Parameters())
		m.Draws = 10
		out := Rank(m)
		if !m.Trusted {
			t.Fatalf("%+v: %s", j, m.Reason)
		}
		ranked += len(out.Fixes)
		for i, f := range out.Fixes {
			checkFix(t, j, m, f, i)
		}
		checkPlan(t, j, m, out)
		for _, n := range out.NoHelp {
			if n.Reason == "" || n.SavedShare.Or(0) >= Worth {
				t.Errorf("%+v: %+v", j, n)
			}
		}
	}
	if ranked < 200 {
		t.Errorf("only %d fixes in 200 jobs: the test tests little", ranked)
	}
}

// changesStep are the fixes that may go below C, because they change it.
var changesStep = []string{OverlapCopy, PinMemory, MoveOffMain, LargerBatch, Compile, RemoveSync}

func checkFix(t *testing.T, j scenario.Job, m loader.Model, f Fix, i int) {
	t.Helper()
	step, saved := f.Predicted.StepSeconds.Or(zero), f.Predicted.StepSavedShare.Or(zero)
	if !slices.Contains(changesStep, f.ID) && step.Value < m.Law.Compute*(1-1e-9) {
		t.Errorf("%+v: %s predicts %v, below C = %v", j, f.ID, step.Value, m.Law.Compute)
	}
	if !(step.Low <= step.Value && step.Value <= step.High) || !(saved.Low <= saved.Value && saved.Value <= saved.High && saved.High <= 1) {
		t.Errorf("%+v: %s: step %+v saved %+v", j, f.ID, step, saved)
	}
	if saved.Value < Worth || f.Position != i+1 || f.How == "" || f.Title == "" || f.Effort == "" {
		t.Errorf("%+v: %+v", j, f)
	}
}

func checkPlan(t *testing.T, j scenario.Job, m loader.Model, out Ranking) {
	t.Helper()
	if len(out.Fixes) > 0 && (len(out.Plan) == 0 || out.Plan[0].ID != out.Fixes[0].ID) {
		t.Errorf("%+v: the plan %+v does not begin with %s", j, out.Plan, out.Fixes[0].ID)
	}
	seen := map[string]bool{}
	for _, s := range out.Plan {
		if seen[s.ID] || s.StepSeconds < j.Device*(1-1e-9)-1e-12 {
			t.Errorf("%+v: plan %+v", j, out.Plan)
		}
		seen[s.ID] = true
	}
}

func randomJob(r *rand.Rand) scenario.Job {
	pick := func(most float64) float64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return most * r.Float64()
	}
	j := scenario.Job{
		W: r.IntN(9), K: float64(1 + r.IntN(8)), Sleep: pick(0.1), Burn: pick(0.1), Gather: pick(0.03),
		Device: 0.005 + pick(0.05), Copy: pick(0.01), Main: pick(0.02), Floor: 0.001, Solo: r.IntN(2) == 0,
		Files: math.Round(pick(32)), Read: pick(1e8), Launches: math.Round(pick(100)), Played: true,
	}
	if r.IntN(2) == 0 {
		j.Batches, j.Epochs, j.WorkerStart = 5+r.IntN(500), 3, pick(2)
	}
	if r.IntN(3) == 0 {
		j.Online = j.K * float64(1+r.IntN(4))
	}
	return j
}

// TestOrder: by saving, what may win nothing last; of two that cannot be told apart the cheaper.
func TestOrder(t *testing.T) {
	mk := func(id string, e effort, low, value float64) priced {
		return priced{rule: rule{id: id}, p: proposal{effort: e}, saved: stat.Estimate{Value: value, Low: low, High: value}}
	}
	for _, c := range []struct {
		name string
		in   []priced
		want string
	}{
		{"by saving", []priced{mk("a", oneArgument, 0.2, 0.2), mk("b", hardware, 0.5, 0.5)}, "ba"},
		{"within 5 %", []priced{mk("a", hardware, 0.5, 0.50), mk("b", oneArgument, 0.48, 0.48)}, "ba"},
		{"sure to win as much", []priced{mk("a", dataJob, 0.5, 0.75), mk("b", oneArgument, 0.5, 0.5)}, "ba"},
		{"not as sure", []priced{mk("a", dataJob, 0.5, 0.75), mk("b", oneArgument, 0.1, 0.5)}, "ab"},
		{"too small", []priced{mk("a", dataJob, 0.01, 0.75), mk("b", oneArgument, 0.1, 0.1)}, "ab"},
		{"may win nothing", []priced{mk("a", oneArgument, -0.01, 0.75), mk("b", dataJob, 0.1, 0.3), mk("c", fewLines, 0, 0.8)}, "bca"},
		{"same effort", []priced{mk("a", fewLines, 0.4, 0.40), mk("b", fewLines, 0.41, 0.41)}, "ba"},
	} {
		got := ""
		for _, x := range order(c.in) {
			got += x.rule.id
		}
		if got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// TestGradeOfPredictions: no prediction is grade A, and one that takes something for granted is grade C.
func TestGradeOfPredictions(t *testing.T) {
	for _, j := range []scenario.Job{scenario.S01(), scenario.S02(1), scenario.S05(1), scenario.S14(), scenario.S21()} {
		for _, f := range advise(j.Parameters()).Fixes {
			want := stat.GradeB
			if len(f.Assumes) > 0 {
				want = stat.GradeC
			}
			for _, e := range []stat.Estimate{f.Predicted.StepSeconds.Or(zero), f.Predicted.StepSavedShare.Or(zero)} {
				if stat.Worse(e.Grade, want) != e.Grade {
					t.Errorf("%s: grade %s with %q", f.ID, e.Grade, f.Assumes)
				}
			}
		}
	}
}

// TestReadingThatNobodySaw: a local cache certainly helps where reads were seen. Where a build only waits, for what is not known,
// it may win nothing, and ranks behind one argument.
func TestReadingThatNobodySaw(t *testing.T) {
	for _, c := range []struct {
		name  string
		files float64
		sure  bool
		first string
	}{{"unseen", 0, false, MoreWorkers}, {"seen", 16, true, NVMeCache}} {
		j := scenario.S02(1)
		j.Files = c.files
		r := advise(j.Parameters())
		f, _ := find(r, NVMeCache)
		if low := f.Predicted.StepSavedShare.Or(zero).Low; low > 0 != c.sure || r.Fixes[0].ID != c.first {
			t.Errorf("%s: a cache saves at least %.3f; first is %s", c.name, low, r.Fixes[0].ID)
		}
	}
}

// TestIDs: the catalogue uses names of the contract, each once.
func TestIDs(t *testing.T) {
	all := IDs()
	seen := map[string]bool{}
	for _, r := range catalogue {
		if !slices.Contains(all, r.id) || seen[r.id] {
			t.Errorf("%s", r.id)
		}
		seen[r.id] = true
	}
	if slices.Sort(all); len(slices.Compact(all)) != 42 {
		t.Errorf("%d names", len(all))
	}
}

// TestJSON: lists are lists, never null.
func TestJSON(t *testing.T) {
	b, err := json.Marshal(advise(loader.Parameters{}))
	lists := strings.ReplaceAll(string(b), `"throughput_ratio":null`, "")
	if err != nil || strings.Contains(lists, "null") {
		t.Errorf("%s %v", b, err)
	}
}

// BenchmarkRank ranks from a tape of recorded batches, 500 draws for every interval: of builds that share full cores, the slowest to
// replay, and of builds that have a core each. The metric is CPU time: the machine may be shared.
func BenchmarkRank(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	tape := make(replay.Tape, 1024)
	for i := range tape {
		tape[i] = replay.Batch{Wait: 0.5 + r.Float32(), CPU: 0.5 + r.Float32(), Outside: 0.9 + 0.2*r.Float32()}
	}
	for name, j := range map[string]scenario.Job{"FullCores": scenario.Uber(), "CoreForEach": scenario.S02(1)} {
		p := j.Parameters()
		p.Tape = tape
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuSeconds()
			fixes := 0
			for b.Loop() {
				fixes = len(Rank(loader.New(p)).Fixes)
			}
			b.ReportMetric((cpuSeconds()-before)/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(fixes), "fixes")
		})
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

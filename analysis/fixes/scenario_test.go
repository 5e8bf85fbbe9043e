package fixes

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
)

// TestScenarios: the first fix of every job whose answer is known, what it brings the step to (milliseconds, hand-off of
// 1.1 ms included), and what must not come first.
func TestScenarios(t *testing.T) {
	storage := []string{NVMeCache, ShardFiles, ParallelFilesystem, MoreRAM}
	for _, c := range []struct {
		name  string
		job   scenario.Job
		first string
		step  float64
		zero  []string // must be worth nothing
	}{
		{"S01", scenario.S01(), MoreWorkers, 20, []string{PinMemory, PrefetchFactor, PersistentWorkers, CheaperDecode}},
		{"S02 W1", scenario.S02(1), MoreWorkers, 16.1, []string{CheaperDecode, PreprocessOnce, PinMemory, MixedPrecision, MoreGPUs}},
		{"S02 W2", scenario.S02(2), MoreWorkers, 16.1, nil},
		{"S02 W4", scenario.S02(4), "", 0, append(storage, MoreWorkers, PrefetchFactor, PreprocessOnce)},
		{"S02 W16", scenario.S02(16), PersistentWorkers, 16.1, append(storage, MoreWorkers, PrefetchFactor, PreprocessOnce)},
		{"S03 W2", scenario.S03(2), NVMeCache, 13.1, []string{MoreWorkers, PrefetchFactor, MixedPrecision, MoreGPUs}},
		{"S03 W4", scenario.S03(4), NVMeCache, 13.1, []string{MoreWorkers, PrefetchFactor}},
		{"S03 W8", scenario.S03(8), NVMeCache, 13.1, []string{MoreWorkers, PrefetchFactor}},
		{"S05 W1", scenario.S05(1), MoreWorkers, 24, append(storage, PrefetchFactor)},
		{"S05 W2", scenario.S05(2), PreprocessOnce, 11.1, append(storage, MoreWorkers, PrefetchFactor)},
		{"S05 W8", scenario.S05(8), PreprocessOnce, 11.1, append(storage, MoreWorkers, PrefetchFactor)},
		{"S06", scenario.S06(), PreprocessOnce, 13.1, []string{PrefetchFactor, ParallelFilesystem, MixedPrecision}},
		{"S09 W2", scenario.S09(2), CPUAffinity, 14.1, append(storage, MoreWorkers, CPULimit)},
		{"S09 W4", scenario.S09(4), CPUAffinity, 14.1, append(storage, MoreWorkers, CPULimit)},
		{"S10", scenario.S10(), VectorizeCollate, 13.1, []string{PrefetchFactor, ParallelFilesystem, CheaperDecode, PreprocessOnce}},
		{"S14", scenario.S14(), PersistentWorkers, 21.1, []string{MoreWorkers, PrefetchFactor, ParallelFilesystem}},
		{"S21", scenario.S21(), MoveOffMain, 16.5, append(storage, MoreWorkers, MixedPrecision, Compile, LargerBatch)},
		{"S23", scenario.S23(), OverlapCopy, 21.1, append(storage, MoreWorkers, PrefetchFactor)},
		{"S25", scenario.S25(), LargerBatch, 15.1, append(storage, MoreWorkers, MoveOffMain, MixedPrecision)},
		{"S26", scenario.S26(), "", 0, append(storage, MoreWorkers, PrefetchFactor, PreprocessOnce, PinMemory)},
		{"S26 marginal", scenario.S26Marginal(), MoreWorkers, 101.1, []string{MixedPrecision, PinMemory}},
		{"Uber", scenario.Uber(), PreprocessOnce, 33.75, append(storage, MoreWorkers, PrefetchFactor, MixedPrecision, MoreGPUs)},
		{"F73", scenario.F73(), "", 0, append(storage, MoreWorkers, CheaperDecode, PreprocessOnce)},
	} {
		r := advise(c.job.Parameters())
		if c.first == "" {
			if len(r.Fixes) > 0 || r.Reason == "" {
				t.Errorf("%s: %s is first (%q)", c.name, r.Fixes[0].ID, r.Reason)
			}
		} else if len(r.Fixes) == 0 || r.Fixes[0].ID != c.first {
			t.Errorf("%s: want %s first, got %v", c.name, c.first, ids(r))
		} else if got := r.Fixes[0].Predicted.StepSeconds.Or(zero).Value * 1e3; math.Abs(got-c.step) > 0.06*c.step/10 {
			t.Errorf("%s: %s brings the step to %.2f ms, want %.2f", c.name, c.first, got, c.step)
		}
		for _, id := range c.zero {
			if slices.Contains(ids(r), id) {
				t.Errorf("%s: %s must not be a fix", c.name, id)
			}
		}
	}
}

func ids(r Ranking) []string {
	var out []string
	for _, f := range r.Fixes {
		out = append(out, f.ID)
	}
	return out
}

func noHelp(r Ranking, id string) string {
	for _, n := range r.NoHelp {
		if n.ID == id {
			return n.Reason
		}
	}
	return ""
}

// TestWords: the sentences that a reader acts on.
func TestWords(t *testing.T) {
	uber := advise(scenario.Uber().Parameters())
	link := advise(scenario.S03(4).Parameters())
	many := advise(scenario.S02(16).Parameters())
	for _, c := range []struct{ got, want string }{
		{noHelp(uber, NVMeCache), "the CPU time of building batches alone keeps all 8 usable cores full: 120 ms of every step"},
		{noHelp(uber, MixedPrecision), "compute hides behind the data wait: batches arrive every 120 ms, and 84 % of the step waits for them"},
		{noHelp(uber, MoreGPUs), "every further GPU waits as well (84 % of its step), and on the same host its workers get none of the cores that are full now: on the input pipeline as it is, twice the GPUs train at most 1.00 times as fast"},
		{noHelp(link, MoreWorkers), "what all workers read from serves one build at a time, 32.0 ms per step, however many ask"},
		{noHelp(link, PrefetchFactor), "batches are built too slowly, not too unevenly: a longer queue fills no faster"},
		{noHelp(many, MoreWorkers), "3 workers keep up; 16 only lengthen every epoch start, by 325 ms"},
		{noHelp(advise(scenario.S02(4).Parameters()), MoreWorkers), "3 workers would keep up already"},
		{noHelp(advise(scenario.F73().Parameters()), NVMeCache), "a step takes 1.3 s with its batches in memory already; the loader keeps up"},
	} {
		if c.got != c.want {
			t.Errorf("got  %q\nwant %q", c.got, c.want)
		}
	}
}

// TestHow: arguments as one would type them, with those that the job gave.
func TestHow(t *testing.T) {
	p := scenario.S02(2).Parameters()
	p.Args.Prefetch, p.Args.Persistent, p.Args.PinMemory = some(4), someBool(true), someBool(true)
	f := advise(p).Fixes[0]
	if want := "DataLoader(..., num_workers=3, prefetch_factor=4, persistent_workers=True, pin_memory=True)"; f.How != want {
		t.Errorf("how: %s", f.How)
	}
	if f.Title != "3 workers instead of 2" || f.Effort != "one argument" {
		t.Errorf("%+v", f)
	}
	if f := advise(scenario.S01().Parameters()).Fixes[0]; f.Title != "2 workers instead of none" || f.How != "DataLoader(..., num_workers=2)" {
		t.Errorf("%s: %s", f.Title, f.How)
	}
}

// TestNumbers: the saving in every currency. S14: 0.3 s of an epoch of 0.34 + 20 × 0.0211 = 0.762 s on one GPU.
func TestNumbers(t *testing.T) {
	p := advise(scenario.S14().Parameters()).Fixes[0].Predicted
	want := map[string][2]float64{
		"share":     {p.StepSavedShare.Or(zero).Value, 0.3 / 0.762},
		"epoch":     {p.EpochSeconds.Or(0), 0.3},
		"gpu hours": {p.GPUHoursPerDay.Or(0), 24 * 0.3 / 0.762},
		"wait":      {p.WaitRemovedShare.Or(0), 0.3 / (0.34 + 20*0.0011)},
		"step":      {p.StepSeconds.Or(zero).Value, 0.0211},
	}
	for name, v := range want {
		if math.Abs(v[0]-v[1]) > 1e-3*v[1] {
			t.Errorf("%s: %v, want %v", name, v[0], v[1])
		}
	}
}

// TestMeasuredLabs: steps measured on a two-core machine and what the fix measured there; the predicted saving is within a
// quarter of the measured one.
func TestMeasuredLabs(t *testing.T) {
	for _, c := range []struct {
		name            string
		job             scenario.Job
		id              string
		measured, fixed float64 // ms
	}{
		{"S01, 4 workers", scenario.S01(), MoreWorkers, 61, 22.2},
		{"S03, cached", scenario.S03(4), NVMeCache, 32.5, 14.1},
		{"S05, 4 workers", scenario.S05(1), MoreWorkers, 49.5, 23.1},
		{"S09, affinity", scenario.S09(2), CPUAffinity, 25.0, 15.6},
		{"S10, vectorised", scenario.S10(), VectorizeCollate, 24.7, 13.7},
		{"S21, moved", scenario.S21(), MoveOffMain, 42.5, 18.9},
	} {
		p := c.job.Parameters()
		e := p.Step.Seconds.Or(zero)
		e.Value, e.Low, e.High = c.measured/1e3, 0.98*c.measured/1e3, 1.02*c.measured/1e3
		p.Step.Seconds = someEst(e)
		if queue := e.Value - c.job.Step(); c.job.W > 0 && p.Batch.RunQueue.Or(0) == 0 && p.Batch.CPU.Or(zero).Value > 0 {
			p.Batch.RunQueue = some(queue * float64(c.job.W)) // what the arithmetic leaves out, seen as waiting for a core
		}
		r := advise(p)
		i := slices.IndexFunc(r.Fixes, func(f Fix) bool { return f.ID == c.id })
		if i < 0 {
			t.Errorf("%s: %s is not a fix (%s)", c.name, c.id, r.Reason)
			continue
		}
		saved := c.measured/1e3 - r.Fixes[i].Predicted.StepSeconds.Or(zero).Value
		want := (c.measured - c.fixed) / 1e3
		if math.Abs(saved-want) > 0.25*want {
			t.Errorf("%s: predicted to save %.1f ms, measured %.1f", c.name, saved*1e3, want*1e3)
		}
	}
}

// TestAssumptions: a fix says what it takes for granted.
func TestAssumptions(t *testing.T) {
	r := advise(scenario.S02(1).Parameters())
	if a := strings.Join(r.Fixes[0].Assumes, " "); !strings.Contains(a, "several of them as fast as one") {
		t.Errorf("more workers: %q", a)
	}
	if a := strings.Join(r.Fixes[1].Assumes, " "); !strings.Contains(a, "no file, request or byte was seen") {
		t.Errorf("cache: %q", a)
	}
}

// TestTwiceTheGPUs on the pipeline that a job has: nothing where the loader is the limit, and otherwise what it has to spare. By
// arithmetic, C and a hand-off of 1.1 ms being halved: S26 has builds of 8 ms by two workers, so 41.1 ÷ 20.55; S02 with three workers
// builds a batch every 40/3 ms, so 16.1 ÷ 13.33.
func TestTwiceTheGPUs(t *testing.T) {
	for _, c := range []struct {
		name  string
		job   scenario.Job
		ratio float64
		by    loader.Bottleneck
	}{
		{"too few workers", scenario.S02(1), 1, loader.ByWorkers},
		{"one link", scenario.S03(4), 1, loader.ByShared},
		{"full cores", scenario.Uber(), 1, loader.ByCores},
		{"just enough workers", scenario.S02(3), 16.1 / (40.0 / 3), loader.ByWorkers},
		{"a loader with time to spare", scenario.S26(), 2, loader.ByCompute},
	} {
		got := advise(c.job.Parameters()).MoreGPUs
		e := got.Throughput.Or(zero)
		if math.Abs(e.Value-c.ratio) > 0.005*c.ratio || got.Bottleneck != string(c.by) || !(e.Low <= e.Value && e.Value <= e.High && e.High <= 2) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := advise(scenario.S01().Parameters()).MoreGPUs.Throughput; got.IsKnown() {
		t.Errorf("without workers there is no pipeline that stays as it is: %+v", got)
	}
	if got := advise(loader.Parameters{}).MoreGPUs.Throughput; got.IsKnown() {
		t.Errorf("nothing is known: %+v", got)
	}
}

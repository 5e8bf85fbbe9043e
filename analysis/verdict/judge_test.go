package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// trained are the facts of a job that ran as it should.
var trained = Facts{Steps: 400, Fetches: 400, HookSeen: unit.Some(true), Steady: true}

func ids(f Findings) []string {
	var out []string
	for _, v := range f.Verdicts {
		out = append(out, v.ID)
		reached[v.ID] = true
	}
	return out
}

func judge(j scenario.Job, change func(*Facts, *loader.Parameters)) Findings {
	f, p := trained, j.Parameters()
	if change != nil {
		change(&f, &p)
	}
	return Judge(f, loader.New(p))
}

func exact(v float64) loader.Est {
	return unit.Some(stat.Estimate{Value: v, Low: v, High: v, N: 100, Grade: stat.GradeB})
}

// jobs are the scenarios with the verdicts that the arithmetic asks for, most important first.
var jobs = []struct {
	name string
	job  scenario.Job
	want []string
}{
	{"S01", scenario.S01(), []string{TooFewWorkers}},
	{"S02 W1", scenario.S02(1), []string{TooFewWorkers}},
	{"S02 W2", scenario.S02(2), []string{TooFewWorkers}},
	{"S02 W4", scenario.S02(4), []string{ComputeBound}},
	{"S02 W16", scenario.S02(16), []string{StartOfEpoch, ComputeBound}},
	{"S03 W2", scenario.S03(2), []string{StorageBandwidth}},
	{"S03 W8", scenario.S03(8), []string{StorageBandwidth}},
	{"S05 W1", scenario.S05(1), []string{TooFewWorkers, CPUTransform}},
	{"S05 W2", scenario.S05(2), []string{CPUTransform}},
	{"S05 W8", scenario.S05(8), []string{CPUTransform}},
	{"S06", scenario.S06(), []string{CPUTransform}},
	{"S09 W2", scenario.S09(2), []string{CPUCapped, CPUTransform}},
	{"S09 W4", scenario.S09(4), []string{CPUCapped, CPUTransform}},
	{"S10", scenario.S10(), []string{CPUTransform}},
	{"S14", scenario.S14(), []string{StartOfEpoch, ComputeBound}},
	{"S21", scenario.S21(), []string{MainProcess, Sync}},
	{"S23", scenario.S23(), []string{Copy}},
	{"S25", scenario.S25(), []string{LaunchBound}},
	{"S26", scenario.S26(), []string{ComputeBound}},
	{"S26 marginal", scenario.S26Marginal(), []string{ComputeBound, TooFewWorkers}},
	{"Uber", scenario.Uber(), []string{CPUTransform}},
	{"F73", scenario.F73(), []string{ComputeBound}},
}

func TestScenarios(t *testing.T) {
	for _, c := range jobs {
		f := judge(c.job, nil)
		if got := ids(f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		for _, v := range f.Verdicts {
			if v.Confidence <= 0 || v.Confidence > 0.99 || v.FalsifiedBy == "" || len(v.Evidence) == 0 || v.Title == "" {
				t.Errorf("%s: %+v", c.name, v)
			}
		}
		for _, d := range f.Dropped {
			if d.Reason == "" || slices.Contains(ids(f), d.ID) {
				t.Errorf("%s: dropped %+v", c.name, d)
			}
		}
	}
}

// TestTitles: the sentences that stand at the top of a report.
func TestTitles(t *testing.T) {
	for _, c := range []struct {
		job  scenario.Job
		want string
	}{
		{scenario.S01(), "The training process builds every batch itself: 67 % of the step is lost to it"},
		{scenario.S05(8), "Building a batch takes 48.0 ms of CPU and keeps both usable cores full: 54 % of the step is lost to it"},
		{scenario.S10(), "Building a batch takes 40.0 ms of CPU, most of it in collate (40.0 ms): 40 % of the step is lost to it"},
		{scenario.S09(2), "The workers' affinity leaves the workers 1 of 2 cores, and builds fill them: 41 % of the step is lost to it"},
		{scenario.S14(), "Every epoch starts with 340 ms without a batch, most of it starting workers: 45 % of the wall time"},
		{scenario.S26Marginal(), "The GPU sets the pace: a step takes 105 ms, 100 ms with its batches in memory; a faster loader wins 4 % at most"},
	} {
		if got := judge(c.job, nil).Verdicts[0].Title; got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
	if got := judge(scenario.S26Marginal(), nil).Verdicts[1].Title; !strings.HasPrefix(got, "Small: ") {
		t.Errorf("4 %% is called %q", got)
	}
}

// TestHandoffFloor: next() on a full queue takes 1.1–1.5 ms; a step of 15 ms that shows 9 % "wait" is not data-bound, also
// where nobody calibrated the floor.
func TestHandoffFloor(t *testing.T) {
	f := judge(scenario.S02(4), func(_ *Facts, p *loader.Parameters) {
		p.Step.Handoff, p.Step.HandoffFloor = loader.Num{}, loader.Num{}
		p.Step.Seconds, p.Step.Wait = exact(0.0164), exact(0.0014)
	})
	if got := ids(f); !slices.Equal(got, []string{ComputeBound}) {
		t.Errorf("%v", got)
	}
	// The cached-data test of such a job shows the 9 %: what it is must be said beside it.
	if v := f.Verdicts[0]; !strings.Contains(v.Title, "handing them over takes") || strings.Contains(v.Title, "no faster loader helps") ||
		strings.Contains(v.FalsifiedBy, "more than 5 %") {
		t.Errorf("%s\n%s", v.Title, v.FalsifiedBy)
	}
}

// TestBlind: where nothing can be known, that is the verdict, and nothing else is guessed.
func TestBlind(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Facts, *loader.Parameters)
		want   []string
	}{
		{"no hook", func(f *Facts, _ *loader.Parameters) { f.HookSeen, f.PythonChildren = unit.Some(false), 2 }, []string{HookNotLoaded}},
		{"no steps", func(f *Facts, _ *loader.Parameters) { f.Steps, f.Fetches = 0, 0 }, []string{NoStepsSeen}},
		{"fetches, none for training", func(f *Facts, _ *loader.Parameters) { f.Steps = 0 }, []string{NoStepsSeen}},
		{"held and idle", func(f *Facts, _ *loader.Parameters) {
			f.Steps, f.Fetches, f.GPUs = 0, 0, []GPU{{Held: unit.Some(1.0), Watched: 1, Resident: unit.Some(0.001), Covered: 1, Hours: 1}}
		}, []string{IdleAllocated, NoStepsSeen}},
		{"assigned, not held", func(f *Facts, _ *loader.Parameters) {
			f.GPUs = []GPU{{Held: unit.Some(0.2), Watched: 1, Hours: 1, Ranks: 1}}
		}, []string{IdleAllocated, ComputeBound}},
		{"short epochs", func(f *Facts, p *loader.Parameters) {
			f.Steady, f.WhyNot, p.Step.Seconds = false, "an epoch has 4 batches", loader.Est{}
			p.Epoch = loader.EpochStart{Seconds: exact(0.3), Share: unit.Some(0.7), Epochs: 5}
		}, []string{StartOfEpoch, NoSteadyState}},
		{"no wait, no test", func(_ *Facts, p *loader.Parameters) { p.Step.Cached, p.Step.Wait = loader.Est{}, loader.Est{} }, []string{NoSteadyState}},
		{"counters lie", func(f *Facts, _ *loader.Parameters) { f.Untrusted = unit.Some(0.4) }, []string{ComputeBound, MetricUntrusted}},
	} {
		if got := ids(judge(scenario.S26(), c.change)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := ids(Judge(Facts{}, loader.New(loader.Parameters{}))); !slices.Equal(got, []string{NoStepsSeen}) {
		t.Errorf("nothing at all: %v", got)
	}
}

// TestVariants: one number changed, another verdict.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		name   string
		job    scenario.Job
		change func(*Facts, *loader.Parameters)
		want   []string
	}{
		{"64 small files, many workers needed", scenario.Job{W: 4, K: 2, Sleep: 0.4, Device: 0.015, Floor: 0.001, Solo: true, Files: 64}, nil, []string{StorageLatency}},
		{"64 small files, a few workers more", scenario.Job{W: 2, K: 4, Sleep: 0.1, Device: 0.015, Floor: 0.001, Solo: true, Files: 64}, nil, []string{TooFewWorkers, StorageLatency}},
		{"quota of 4 on 12 cores (M10)", scenario.Job{W: 8, K: 4, Online: 12, Burn: 0.2, Device: 0.01, Floor: 0.001, Solo: true},
			func(_ *Facts, p *loader.Parameters) {
				p.Host.Quota, p.Host.Cpuset, p.Host.Throttled = unit.Some(4.0), loader.Num{}, unit.Some(0.95)
			}, []string{CPUCapped, CPUTransform}},
		{"affinity seen only in the least of all limits", scenario.S09(2), func(_ *Facts, p *loader.Parameters) { p.Host.Affinity = loader.Num{} }, []string{CPUCapped, CPUTransform}},
		{"32 threads per worker (S07)", scenario.Job{W: 2, K: 2, Burn: 0.139, Device: 0.01, Floor: 0.001, Solo: true},
			func(_ *Facts, p *loader.Parameters) {
				p.Batch.CPU, p.Batch.ProcessCPU, p.Solo.OffCPU, p.Solo.Wall = exact(0.07), unit.Some(0.139), exact(0), loader.Est{}
				p.Host.ThreadsPerWorker = unit.Some(32)
			}, []string{ThreadOversubscription, CPUTransform}},
		{"114 tensors (F51)", scenario.S26(), func(_ *Facts, p *loader.Parameters) {
			p.Step.Handoff, p.Step.Seconds, p.Step.Wait, p.Batch.Tensors = unit.Some(0.012), exact(0.052), exact(0.012), unit.Some(114.0)
		}, []string{HandOff}},
		{"resident all the time, few SMs (M1)", scenario.S26(), func(_ *Facts, p *loader.Parameters) {
			p.Device.Resident, p.Device.SMActive, p.Device.SMComputing = unit.Some(1.0), unit.Some(0.1), unit.Some(0.1)
		}, []string{LaunchBound, ComputeBound}},
		{"no device, cached step equals live", scenario.S26(), func(_ *Facts, p *loader.Parameters) { p.Device = loader.Device{} }, []string{ComputeBound}},
		{"no device, no test", scenario.S26(), func(_ *Facts, p *loader.Parameters) { p.Device, p.Step.Cached = loader.Device{}, loader.Est{} }, []string{Healthy}},
		{"builds not seen", scenario.S02(1), func(_ *Facts, p *loader.Parameters) { p.Batch, p.Solo = loader.BatchCosts{}, loader.SoloCosts{} }, []string{DataWait}},
		{"W = 0, builds not seen: the wait is the build", scenario.S01(), func(_ *Facts, p *loader.Parameters) { p.Batch = loader.BatchCosts{} }, []string{TooFewWorkers}},
		{"one epoch start, long epoch", scenario.S26(), func(_ *Facts, p *loader.Parameters) {
			p.Epoch = loader.EpochStart{Seconds: exact(2), Share: unit.Some(0.3), Epochs: 1, Batches: unit.Some(10000)}
		}, []string{ComputeBound}},
		{"one epoch start, unknown epoch", scenario.S26(), func(_ *Facts, p *loader.Parameters) {
			p.Epoch = loader.EpochStart{Seconds: exact(2), Share: unit.Some(0.3), Epochs: 1}
		}, []string{ComputeBound}},
	} {
		if got := ids(judge(c.job, c.change)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestConfidence: less measured, less sure.
func TestConfidence(t *testing.T) {
	full := judge(scenario.S05(8), nil).Verdicts[0]
	record := scenario.S05(8)
	record.Solo = false
	seen := judge(record, nil).Verdicts[0]
	missed := judge(scenario.S05(8), func(_ *Facts, p *loader.Parameters) { p.Step.Seconds = exact(0.03) }).Verdicts[0]
	if full.ID != seen.ID || seen.Confidence >= full.Confidence || missed.Confidence >= seen.Confidence {
		t.Errorf("with the test %v, without %v, law missed %v", full.Confidence, seen.Confidence, missed.Confidence)
	}
}

// TestRecordMode: S03 without builds alone cannot be told from latency, and says so.
func TestRecordMode(t *testing.T) {
	j := scenario.S03(4)
	j.Solo = false
	f := judge(j, nil)
	i := slices.IndexFunc(f.Dropped, func(d Dropped) bool { return d.ID == StorageBandwidth })
	if i < 0 || !strings.Contains(f.Dropped[i].Reason, "was not measured") {
		t.Errorf("%v, dropped %+v", ids(f), f.Dropped)
	}
}

func BenchmarkJudge(b *testing.B) {
	m := loader.New(scenario.Uber().Parameters())
	b.ReportAllocs()
	for b.Loop() {
		Judge(trained, m)
	}
}

// A loader of plain Python, two workers, 5 ms on the device: a step takes 7 ms, for handing a batch over takes the 2 ms that
// it takes anywhere. The loader keeps up, and yet the step is 1.4 times as long as with its batches in memory.
func TestShortStepsFeelTheHandOff(t *testing.T) {
	short := judge(scenario.S26(), func(_ *Facts, p *loader.Parameters) {
		p.Step.Seconds, p.Step.Wait = exact(0.0070), exact(0.0020)
		p.Step.Cached = exact(0.0050)
		p.Step.Handoff = unit.Some(0.0020)
		p.Batch.Wall, p.Batch.CPU = exact(0.0030), exact(0.0005)
	})
	if got := ids(short); len(got) == 0 || got[0] != HandOff || slices.Contains(got, ComputeBound) {
		t.Errorf("verdicts %v, want %s first and no %s", got, HandOff, ComputeBound)
	}
}

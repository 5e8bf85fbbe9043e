package compare

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func TestARepairedJobIsBetter(t *testing.T) {
	c := Run(job(nil), repaired(nil), Options{})
	for _, id := range []string{RowSM, RowWait, RowExposed, RowStep, RowEpoch, RowEpochGPUHours} {
		if r := rowOf(t, c, id); r.Outcome != Better {
			t.Errorf("%s: %s (%s)", id, r.Outcome, r.Why)
		}
	}
	if r := rowOf(t, c, RowCached); r.Outcome != Same {
		t.Errorf("a step in memory that takes as long: %s", r.Outcome)
	}
	if !c.Comparable || len(c.Objections) > 0 {
		t.Errorf("%+v", c.Objections)
	}
}

// 150 batches, 2 a step: 75 steps of 0.1 s and 2 s of start are 9.5 s. Ten epochs on 2 GPUs are 190 GPU-seconds; at 36 an hour 1.90.
// A batch of each of 2 ranks makes 16 requests: 150 × 2 × 16.
func TestWhatIsReckonedIsArithmetic(t *testing.T) {
	two := func(r *analysis.Result) {
		r.Job.Ranks, r.Job.FetchesPerStep = 2, some(2.0)
		r.Step.MeanSeconds = about(0.1, 0.005)
		r.GPUs = append(r.GPUs, r.GPUs[0])
	}
	c := Run(job(two), repaired(two), Options{Epochs: 10, HourCost: 36})
	for id, want := range map[string]float64{
		RowEpoch: 9.5, RowEpochGPUHours: 19.0 / 3600, RowEpochCost: 0.19, RowRun: 95, RowRunGPUHours: 190.0 / 3600, RowRunCost: 1.9,
		RowRequests: 4800, RowBytes: 300e3, RowSamples: 160, RowFiles: 0,
	} {
		if r := rowOf(t, c, id); !is(r.Before, want) {
			t.Errorf("%s: %+v, want %v", id, r.Before, want)
		}
	}
	if e, _ := rowOf(t, c, RowEpoch).Before.Get(); math.Abs(e.High-9.5-math.Hypot(75*0.005, 0.5)) > 1e-9 {
		t.Errorf("its interval: %+v", e)
	}
}

// Two runs that were watched to their end, over the same steps, took what they took.
func TestWholeRunsAreComparedWhereBothWereWatched(t *testing.T) {
	whole := func(r *analysis.Result) { r.EndedBy, r.Baseline = some("command"), nil }
	if r := rowOf(t, Run(job(whole), repaired(whole), Options{}), RowRun); !is(r.Before, 30) || r.Outcome != Unweighed {
		t.Errorf("%+v", r)
	}
	longer := func(r *analysis.Result) { whole(r); r.Job.Steps = 300 }
	tested := func(r *analysis.Result) { r.EndedBy = some("command") }
	for name, after := range map[string]Input{"a test": repaired(nil), "a test before its end": repaired(tested), "another number of steps": repaired(longer),
		"a failure": repaired(func(r *analysis.Result) { whole(r); r.ExitCode = some(1) })} {
		if r := rowOf(t, Run(job(whole), after, Options{}), RowRun); r.Before.IsKnown() || !strings.Contains(r.Why, "--epochs") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Each difference besides the one compared keeps its own rows out, says why there, and leaves the others.
func TestWhatIsNotComparableIsNotCompared(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(*analysis.Result)
		out, stay []string
		why       string
	}{
		{"other batches", func(r *analysis.Result) { r.Job.SamplesPerBatch, r.Loaders[0].BatchesPerEpoch = some(16.0), some(75) },
			[]string{RowStep, RowCached, "build_seconds", "requests"}, []string{RowSM, RowWait, RowEpoch, RowSamples, RowRequests}, "8 samples before and 16 samples after"},
		{"other data", func(r *analysis.Result) { r.Loaders[0].BatchesPerEpoch = some(300) },
			[]string{RowEpoch, RowEpochGPUHours, RowRequests, RowBytes}, []string{RowStep, RowWait, RowSM, RowEpochStart}, "1200 samples before and 2400 after"},
		{"other ranks", func(r *analysis.Result) { r.Job.Ranks, r.Loaders[0].BatchesPerEpoch = 2, some(75) },
			[]string{RowStep, RowCached, RowEpoch, RowSamples}, []string{RowSM, RowWait, RowEpochGPUHours, RowRequests}, "1 rank before, 2 ranks after"},
		{"other GPUs", func(r *analysis.Result) { r.GPUs[0].Name = "H100" },
			[]string{RowSM, RowLiveSM, RowWait, RowStep, RowEpoch, "exposed_wait"}, []string{RowRequests, RowEpochStart, "requests"}, "A100 before, H100 after"},
		{"counters that contradict themselves", func(r *analysis.Result) { r.Verdicts = []analysis.Verdict{{ID: "metric-untrusted"}} },
			[]string{RowSM, RowLiveSM}, []string{RowStep, RowWait, RowEpoch}, "the run after contradict themselves"},
		{"few steps", func(r *analysis.Result) { r.Step.N = 19 },
			[]string{RowStep, RowWait, RowExposed, RowEpoch}, []string{RowSM, RowCached, RowRequests}, "19 steady steps"},
		{"fetches for steps", func(r *analysis.Result) { r.Job.StepIs = "fetch" },
			[]string{RowStep, RowCached}, []string{RowWait, RowSM}, "one fetch after"},
		{"a lower bound of bytes", func(r *analysis.Result) { r.Loaders[0].BytesSource = analysis.AtLeast },
			[]string{RowBytes, "bytes"}, []string{RowRequests, RowStep}, "the bytes after are a lower bound"},
	} {
		got := Run(job(nil), repaired(c.change), Options{})
		for _, id := range c.out {
			if r := rowOf(t, got, id); r.Outcome != NotComparable || !strings.Contains(r.Why, c.why) || r.Difference.IsKnown() {
				t.Errorf("%s: %s is %s (%s)", c.name, id, r.Outcome, r.Why)
			}
		}
		for _, id := range c.stay {
			if r := rowOf(t, got, id); !r.Outcome.Compared() {
				t.Errorf("%s: %s is %s (%s)", c.name, id, r.Outcome, r.Why)
			}
		}
		if !slices.ContainsFunc(got.Objections, func(o Objection) bool { return strings.Contains(o.Text, c.why) && len(o.Rows) > 0 }) {
			t.Errorf("%s: %+v", c.name, got.Objections)
		}
	}
}

// The last batch of an epoch cuts it at another place when batches have another size: that is the same data.
func TestACutOffBatchIsNoOtherData(t *testing.T) {
	c := Run(job(nil), repaired(func(r *analysis.Result) { r.Job.SamplesPerBatch, r.Loaders[0].BatchesPerEpoch = some(64.0), some(18) }), Options{}) // 1152 of 1200
	if r := rowOf(t, c, RowEpoch); r.Outcome != Better {
		t.Errorf("%s (%s)", r.Outcome, r.Why)
	}
}

func TestAnEmulatedRunIsNeverComparedWithARealOne(t *testing.T) {
	c := Run(job(nil), repaired(func(r *analysis.Result) { r.Emulated = true }), Options{Applied: []string{"more-workers"}})
	if c.Comparable || c.Emulated || len(c.Predictions) > 0 {
		t.Errorf("comparable %t, emulated %t, %d predictions", c.Comparable, c.Emulated, len(c.Predictions))
	}
	for _, r := range slices.Concat(c.Rows, c.Batch, c.Accounts) {
		if r.Outcome.Compared() {
			t.Errorf("%s is %s", r.ID, r.Outcome)
		}
	}
}

// What is unknown on a side is unknown in the row, with the reason and without a difference; nothing is compared of runs that know nothing.
func TestWhatIsUnknownStaysUnknown(t *testing.T) {
	c := Run(Input{Result: &analysis.Result{}}, Input{Result: &analysis.Result{}}, Options{})
	if c.Comparable {
		t.Error("two runs that know nothing were compared")
	}
	for _, r := range slices.Concat(c.Rows, c.Batch) {
		if r.Outcome != Unknown || r.Difference.IsKnown() || r.Ratio.IsKnown() || r.Why == "" {
			t.Errorf("%+v", r)
		}
	}
	half := func(r *analysis.Result) {
		r.GPUs = append(r.GPUs, analysis.GPU{Name: "A100", AllocatedNS: 30e9, SMActiveRatio: unit.None[stat.Estimate]("lost")})
	}
	if r := rowOf(t, Run(job(half), repaired(nil), Options{}), RowSM); r.Outcome != Unknown || !strings.Contains(r.Why, "not known of every GPU") {
		t.Errorf("known of one GPU of two: %+v", r)
	}
	if r := rowOf(t, Run(job(nil), repaired(nil), Options{}), RowEpochCost); r.Outcome != Unknown || !strings.Contains(r.Why, "--gpu-hour-cost") {
		t.Errorf("money without a price: %+v", r)
	}
	slice := func(r *analysis.Result) { r.GPUs[0].Parent = some("GPU-0") }
	if r := rowOf(t, Run(job(slice), repaired(nil), Options{HourCost: 2}), RowEpochCost); r.Outcome != Unknown {
		t.Errorf("money of a slice: %+v", r)
	}
}

// The price is the reader's, or that of both reports; two prices are none.
func TestOnePriceHoldsForBothRuns(t *testing.T) {
	at := func(price float64) func(*analysis.Result) {
		return func(r *analysis.Result) { r.HourCost = some(price) }
	}
	if r := rowOf(t, Run(job(at(3600)), repaired(at(3600)), Options{}), RowEpochCost); !is(r.Before, 17) {
		t.Errorf("an epoch of 17 s at one a second: %+v", r)
	}
	if r := rowOf(t, Run(job(at(1)), repaired(at(2)), Options{}), RowEpochCost); r.Outcome != Unknown || !strings.Contains(r.Why, "different prices") {
		t.Errorf("%+v", r)
	}
	if r := rowOf(t, Run(job(at(1)), repaired(at(2)), Options{HourCost: 3600}), RowEpochCost); !is(r.Before, 17) {
		t.Errorf("%+v", r)
	}
}

func TestSeveralLoadersThatFeedTheTrainingHaveNoEpoch(t *testing.T) {
	c := Run(job(func(r *analysis.Result) { r.Loaders = append(r.Loaders, r.Loaders[0]) }), repaired(nil), Options{})
	if r := rowOf(t, c, RowEpoch); r.Outcome != Unknown || !strings.Contains(r.Why, "several loaders") {
		t.Errorf("%+v", r)
	}
	c = Run(job(func(r *analysis.Result) {
		r.Loaders = append(r.Loaders, analysis.Loader{Role: "validation", Fetches: 1000})
	}), repaired(nil), Options{})
	if r := rowOf(t, c, RowEpoch); r.Outcome != Better {
		t.Errorf("beside a validation loader: %+v", r)
	}
}

// 15 of 30 s wait, 6 of them start; where the exposure of the wait is unknown, the account that would hold it says nothing.
func TestAccountsAreShares(t *testing.T) {
	c := Run(job(nil), repaired(nil), Options{})
	if r := rowOf(t, c, "exposed_wait"); !is(r.Before, 0.5) || r.Outcome != Unweighed {
		t.Errorf("%+v", r)
	}
	c = Run(job(nil), repaired(func(r *analysis.Result) { r.Step.ExposedWaitShare = unit.None[stat.Estimate]("no device clock") }), Options{})
	if r := rowOf(t, c, "exposed_wait"); r.After.IsKnown() || r.Outcome != Unknown {
		t.Errorf("%+v", r)
	}
	c = Run(job(nil), repaired(func(r *analysis.Result) { r.GPUs[0].AccountsNS["startup"], r.GPUs[0].AccountsNS["compute"] = 1e9, 14e9 }), Options{})
	if r := rowOf(t, c, RowSM); !strings.Contains(r.Note, "20 % of the allocated time before and 3 % after") {
		t.Errorf("%q", r.Note)
	}
}

func TestWhatAReaderMustKnowIsSaid(t *testing.T) {
	for id, after := range map[string]Input{
		"same-run": job(nil),
		"script":   repaired(func(r *analysis.Result) { r.Job.Name = "other.py" }),
		"step-work": repaired(func(r *analysis.Result) {
			r.Baseline.Legs["host-cached"] = analysis.Leg{StepSeconds: about(0.02, 0.001)}
		}),
		"busy-machine": repaired(func(r *analysis.Result) { r.Host.Cores, r.Host.ForeignCores = some(2.0), some(1.5) }),
		"damaged":      repaired(func(r *analysis.Result) { r.Quality.Damage.Unfinished = true }),
		"gpu-source":   repaired(func(r *analysis.Result) { r.GPUs[0].Source = "nvml" }),
		"version":      repaired(func(r *analysis.Result) { r.Version = "2" }),
	} {
		c := Run(job(nil), after, Options{})
		if len(c.Objections) != 1 || c.Objections[0].ID != id || len(c.Objections[0].Rows) > 0 {
			t.Errorf("%s: %+v", id, c.Objections)
		}
	}
}

func TestChangesAreListed(t *testing.T) {
	c := Run(job(nil), repaired(func(r *analysis.Result) {
		argument(r, "num_workers", "6")
		argument(r, "multiprocessing_context", `"spawn"`)
		r.Loaders[0].Dataset = "Shards"
		r.Job.Command = []string{"python3", "train.py", "--data", "shards", "--cache"}
	}), Options{})
	want := []Change{{"multiprocessing_context", "None", "spawn"}, {"num_workers", "2", "6"}, {"dataset", "Catalogue", "Shards"}, {"command", "--data objects", "--data shards --cache"}}
	if !slices.Equal(c.Changes, want) {
		t.Errorf("%+v", c.Changes)
	}
}

package sample

import (
	"encoding/json"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/analysis/track"
	"github.com/datawait/datawait/probe/unit"
)

// Pair is two runs side by side, and the name of its golden files.
type Pair struct {
	Name       string
	Comparison *compare.Comparison
}

// Pairs returns every sample of a comparison, built anew.
func Pairs() []Pair {
	sideBySide := func(b, a *analysis.Result, o compare.Options) *compare.Comparison {
		o.Version = "0.1.0"
		return compare.Run(compare.Input{Path: "before", Result: b}, compare.Input{Path: "after", Result: a}, o)
	}
	before := Retail()
	before.Step.N = 380
	workers := sideBySide(climbed(before, 0), climbed(MoreWorkers(), 0), compare.Options{Epochs: 90, HourCost: 2.5})
	workers.TrackRecord = &track.TrackRecord{Checked: 7, Within: 6, MedianError: num(0.041), MedianWidth: num(0.28), Emulated: true}
	other := MoreWorkers()
	other.Job.SamplesPerBatch, other.GPUs[0].Name = num(128), "Emulated H100"
	return []Pair{
		{"compare-workers", workers},
		{"compare-worse", sideBySide(MoreWorkers(), Retail(), compare.Options{})},
		{"compare-partly", sideBySide(Retail(), other, compare.Options{Applied: []string{"shard-files", "preprocess-once"}})},
		{"compare-refused", sideBySide(Retail(), ComputeBound(), compare.Options{})},
		{"compare-hostile", sideBySide(reported(Hostile()), Hostile(), compare.Options{Applied: []string{"pin-memory"}})},
		{"compare-empty", sideBySide(&analysis.Result{}, &analysis.Result{}, compare.Options{})},
	}
}

// MoreWorkers is the job of the README with eight workers, as its report advises.
func MoreWorkers() *analysis.Result {
	r := Retail()
	r.StartedAt = unit.Some(time.Date(2026, 11, 30, 9, 40, 0, 0, time.UTC))
	r.Job.Steps, r.Job.StepsPerSecond = 640, est(43.3, 42, 44.6, 14, stat.GradeB, "hook clock")
	r.Step.MeanSeconds = est(0.0231, 0.0224, 0.0238, 14, stat.GradeA, "device events")
	r.Step.DataWaitShare, r.Step.ExposedWaitShare = est(0.318, 0.301, 0.335, 14, stat.GradeB, "hook clock"), est(0.309, 0.292, 0.326, 14, stat.GradeA, "emulated device events")
	r.Step.Anatomy = []analysis.Part{{Name: "compute", Seconds: 0.0149, Share: 0.645}, {Name: "exposed_wait", Seconds: 0.0071, Share: 0.309}, {Name: "copy", Seconds: 0.0004, Share: 0.017}, {Name: "host", Seconds: 0.0007, Share: 0.029}}
	r.Step.N = 610
	r.Baseline.Legs["live"] = analysis.Leg{StepSeconds: est(0.0232, 0.0225, 0.0239, 14, stat.GradeA, "device events"), SMActiveRatio: est(0.512, 0.499, 0.525, 14, stat.GradeA, "emulated counters"), Blocks: 14, Steps: 224}
	r.Ranks[0].PID, r.Ranks[1].PID = 5100, 5101
	l := &r.Loaders[0]
	l.WorkersSeen, l.Arguments["num_workers"] = 8, json.RawMessage("8")
	l.EpochStartSeconds = est(0.71, 0.52, 0.90, 2, stat.GradeB, "hook clock")
	for i := range r.GPUs {
		r.GPUs[i].SMActiveRatio = est(0.507, 0.489, 0.525, 1612, stat.GradeA, "emulated counters")
		moved := int64(40e9)
		r.GPUs[i].AccountsNS["exposed_wait"] -= moved
		r.GPUs[i].AccountsNS["compute"] += moved
	}
	return r
}

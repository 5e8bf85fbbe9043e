package compare

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// about is an estimate with an interval of so much on either side.
func about(value, half float64) analysis.Est {
	return unit.Some(stat.Estimate{Value: value, Low: value - half, High: value + half, N: 50, Grade: stat.GradeA, Source: "hook clock"})
}

func exactly(value float64) analysis.Est {
	return unit.Some(stat.Exact(value).Estimate(1, stat.GradeC, "hook clock"))
}

func some[T any](v T) unit.Maybe[T] { return unit.Some(v) }

// job is a run of one rank: 150 batches of 8 samples an epoch, one a step of 100 ms of which 70 ms are waiting.
func job(change func(*analysis.Result)) Input {
	r := &analysis.Result{
		Schema: analysis.Schema, Version: "1", Nodes: []string{"a"}, StartedAt: some(time.Unix(1e9, 0)), EndedBy: some("datawait"), ExitCode: some(0),
		Job: analysis.Job{Name: "train.py", Command: []string{"python3", "train.py", "--data", "objects"}, Ranks: 1, Steps: 200, FetchesPerStep: some(1.0), StepIs: "optimizer step",
			StepsPerSecond: about(10, 0.5), SamplesPerBatch: some(8.0), WallSeconds: some(30.0)},
		Step: analysis.Step{MeanSeconds: about(0.1, 0.005), DataWaitShare: about(0.7, 0.02), ExposedWaitShare: about(0.69, 0.02), N: 100,
			Anatomy: []analysis.Part{{Name: "exposed_wait", Seconds: 0.069}, {Name: "compute", Seconds: 0.031}}},
		Ranks: []analysis.Rank{{Host: "a", PID: 1}},
		Loaders: []analysis.Loader{{Role: "training", Dataset: "Catalogue", Fetches: 200, BatchesPerEpoch: some(150), EpochStartSeconds: about(2, 0.5),
			Requests: some(16.0), Files: some(0.0), Bytes: some(1000.0), BytesSource: "socket diagnostics (grade B)", CPUSeconds: some(0.02), BuildSeconds: about(0.2, 0.01),
			Arguments: map[string]json.RawMessage{"num_workers": json.RawMessage("2"), "prefetch_factor": json.RawMessage("2"), "pin_memory": json.RawMessage("false"),
				"persistent_workers": json.RawMessage("false"), "in_order": json.RawMessage("true"), "multiprocessing_context": json.RawMessage("null")}}},
		GPUs: []analysis.GPU{{UUID: "GPU-1", Name: "A100", Source: "dcgm", AllocatedNS: 30e9, SMActiveRatio: about(0.24, 0.02), Parent: unit.None[string]("whole"),
			AccountsNS: map[string]int64{"exposed_wait": 15e9, "compute": 9e9, "startup": 6e9}}},
		Baseline: &analysis.Baseline{Legs: map[string]analysis.Leg{"live": {StepSeconds: about(0.1, 0.01), SMActiveRatio: about(0.3, 0.02)},
			"host-cached": {StepSeconds: about(0.030, 0.001), SMActiveRatio: about(0.9, 0.01)}}},
		Model: analysis.Model{Trusted: true},
	}
	if change != nil {
		change(r)
	}
	return Input{Path: "run", Result: r}
}

// repaired is the same job afterwards: a step of 33 ms.
func repaired(change func(*analysis.Result)) Input {
	return job(func(r *analysis.Result) {
		r.StartedAt, r.Ranks[0].PID = some(time.Unix(1e9+60, 0)), 2
		r.Step.MeanSeconds, r.Step.DataWaitShare, r.Step.ExposedWaitShare = about(0.033, 0.001), about(0.1, 0.01), about(0.09, 0.01)
		r.GPUs[0].SMActiveRatio = about(0.66, 0.03)
		if change != nil {
			change(r)
		}
	})
}

func argument(r *analysis.Result, name, value string) {
	r.Loaders[0].Arguments[name] = json.RawMessage(value)
}

// predicts gives a run a ranked fix.
func predicts(r *analysis.Result, id string, step analysis.Est, how string) {
	r.Fixes = append(r.Fixes, analysis.Fix{ID: id, Title: id, How: how, Position: len(r.Fixes) + 1, Predicted: fixes.Prediction{StepSeconds: step, StepSavedShare: about(0.2, 0.1)}})
}

func rowOf(t *testing.T, c *Comparison, id string) Row {
	t.Helper()
	for _, rows := range [][]Row{c.Rows, c.Batch, c.Accounts, c.Step} {
		for _, r := range rows {
			if r.ID == id {
				return r
			}
		}
	}
	t.Fatalf("there is no row %s", id)
	return Row{}
}

func is(e analysis.Est, want float64) bool {
	v, ok := e.Get()
	return ok && math.Abs(v.Value-want) < 1e-9*math.Max(1, math.Abs(want))
}

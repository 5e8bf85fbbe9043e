package analysis

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/probe/recording"
)

const ms = simulate.Millisecond

// constant builds every batch in the same time.
func constant(ns int64) func(int, int, int) int64 { return func(int, int, int) int64 { return ns } }

// analyse plays a job and runs the analysis.
func analyse(t *testing.T, j simulate.Job) (*Result, simulate.Truth) {
	t.Helper()
	m, truth := j.Play()
	result, err := Run([]recording.Reader{m}, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(result); err != nil {
		t.Fatalf("writing the result as JSON: %v", err)
	}
	return result, truth
}

// near reports whether two numbers differ by at most tolerance.
func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

func TestRunLoaderBound(t *testing.T) {
	r, truth := analyse(t, simulate.Job{Epochs: 2, Steps: 200, Workers: 2, Prefetch: 2, Build: constant(40 * ms), Handoff: ms / 10,
		Start: 50 * ms, Compute: 10 * ms, Depth: 1, Host: ms / 2, SM: 0.8, Window: 100 * ms})
	step, _ := r.Step.MeanSeconds.Get()
	if !near(step.Value, 0.020, 0.0003) { // L/W
		t.Errorf("step = %+v, want 20 ms", step)
	}
	share, ok := r.Step.DataWaitShare.Get()
	if !ok || !near(share.Value, 0.74, 0.01) || share.Low > share.Value || share.High < share.Value {
		t.Errorf("data wait share = %+v (%v)", share, ok)
	}
	if exposed, ok := r.Step.ExposedWaitShare.Get(); !ok || !near(exposed.Value, 0.4875, 0.001) {
		t.Errorf("exposed wait share = %+v (%v): launches that run ahead hide the rest of the wait", exposed, ok)
	}
	if compute := r.GPUs[0].AccountsNS["compute"]; !near(float64(compute), float64(truth.Busy), 0.001*float64(truth.Busy)) {
		t.Errorf("compute %d ns, the device was busy %d ns", compute, truth.Busy)
	}
	idle := int64(0)
	for i, ns := range truth.Idles {
		if i%200 != 0 { // the first of an epoch belongs to its start
			idle += ns
		}
	}
	if exposed := r.GPUs[0].AccountsNS["exposed_wait"]; exposed != idle {
		t.Errorf("exposed wait %d ns, the device ran dry for %d ns", exposed, idle)
	}
	for _, w := range append(r.Timeline.Wait, Interval{0, r.Timeline.Seconds}) {
		if w.Begin < 0 || w.End < w.Begin || w.End > r.Timeline.Seconds {
			t.Errorf("interval %+v of %v s", w, r.Timeline.Seconds)
		}
	}
}

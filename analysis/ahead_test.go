package analysis

import (
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/recording"
)

// TestAThreadThatRunsAheadDoesNotSetThePace: builds of 42 ms, 48 ms on the device and nothing that waits for it (scenario F59). The
// training thread makes steps of 42 ms, but for the few in which the test waits until the device is done; the job makes steps of 48 ms.
func TestAThreadThatRunsAheadDoesNotSetThePace(t *testing.T) {
	job := simulate.Job{Epochs: 1, Steps: 1000, Workers: 1, Prefetch: 2, Build: varying(42*ms, 0.02), Handoff: ms / 10, Compute: 48 * ms, Depth: 1000,
		Host: ms / 2, SM: 0.9, Window: 100 * ms, Warm: 40, Plan: plan(4), BlockSteps: 22}
	m, _ := job.Play()
	r, err := Run([]recording.Reader{m}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if off := r.Model.ReplayError.Or(math.NaN()); !r.Model.Trusted || !(off < 0.02) {
		t.Errorf("trusted %v, off by %v: %s", r.Model.Trusted, off, r.Model.Reason)
	}
	if len(r.Verdicts) == 0 || r.Verdicts[0].ID != verdict.ComputeBound || len(r.Fixes) > 0 {
		t.Errorf("%+v, fixes %+v", r.Verdicts, r.Fixes)
	}
}

// TestAQueueHidesAsMuchAsTheDeviceWasFed: builds vary by 80 % and take as long as the device, so what the job loses to them is what the
// queue on the device cannot hide. Its length was recorded nowhere; how long the device had nothing to run was.
func TestAQueueHidesAsMuchAsTheDeviceWasFed(t *testing.T) {
	job := simulate.Job{Epochs: 1, Steps: 2000, Workers: 1, Prefetch: 2, Build: varying(20*ms, 0.8), Handoff: ms / 10, Compute: 20 * ms,
		Host: ms / 10, SM: 0.9, Window: 100 * ms}
	for _, job.Depth = range []int{1, 2, 4, 16, 64} {
		m, _ := job.Play()
		r, err := Run([]recording.Reader{m}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		off := r.Model.ReplayError.Or(math.NaN())
		t.Logf("%d launches: off by %.3f", job.Depth, off)
		if !r.Model.Trusted || !(off < 0.02) {
			t.Errorf("%d launches: trusted %v, off by %v: %s", job.Depth, r.Model.Trusted, off, r.Model.Reason)
		}
	}
}

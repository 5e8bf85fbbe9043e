package verdict

import (
	"slices"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/probe/unit"
)

// TestSync: 10 ms of the training thread and 25 ms of the device one after the other; side by side 10 of the 36.1 are gone (F57).
func TestSync(t *testing.T) {
	turns := scenario.Job{W: 2, K: 2, Sleep: 0.004, Main: 0.010, Device: 0.025, Floor: 0.0011, Solo: true, Launches: 1}
	exposed := func(of float64) func(*Facts, *loader.Parameters) {
		return func(_ *Facts, p *loader.Parameters) { p.Step.Exposed = exact(of * 0.0011) }
	}
	for _, c := range []struct {
		name   string
		job    scenario.Job
		change func(*Facts, *loader.Parameters)
		given  bool
	}{
		{"no device clock", turns, nil, true},
		{"the device is empty at next()", turns, exposed(1), true},
		{"the device still works at next()", turns, exposed(0.3), false},
		{"the thread is on the CPU all the time", turns, func(_ *Facts, p *loader.Parameters) { p.Step.MainCPU = unit.Some(0.035) }, false},
		{"the thread comes back before the device is done", turns, func(_ *Facts, p *loader.Parameters) { p.Step.Wait = exact(0.020) }, false},
		{"many small kernels", scenario.S25(), nil, false},
		{"a millisecond of the script's own", scenario.S26(), func(_ *Facts, p *loader.Parameters) { p.Step.MainCPU = unit.Some(0.001) }, false},
		{"too few workers as well", scenario.Job{W: 1, K: 2, Sleep: 0.2, Main: 0.010, Device: 0.025, Floor: 0.0011, Solo: true, Launches: 1}, nil, false},
	} {
		f := judge(c.job, c.change)
		if got := slices.Contains(ids(f), Sync); got != c.given {
			t.Errorf("%s: %v (dropped %+v)", c.name, ids(f), f.Dropped)
		}
	}
	got := judge(turns, exposed(1)).Verdicts[0]
	if want := "The training thread and the GPU take turns: it works for 10.0 ms with the GPU idle and sleeps while the GPU works for 25.0 ms; side by side a step would be 28 % shorter"; got.ID != Sync || got.Title != want {
		t.Errorf("%s: %q", got.ID, got.Title)
	}
	if blind := judge(turns, nil).Verdicts[0]; !(blind.Confidence < got.Confidence) {
		t.Errorf("as sure without the device's clock: %v and %v", blind.Confidence, got.Confidence)
	}
}

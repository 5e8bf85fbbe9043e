package loader_test

import (
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// TestPace: the training thread never waits for the device. What the live blocks took at the device is the pace where the thread's own steps
// were clearly shorter, or shorter than the device needs.
func TestPace(t *testing.T) {
	between := func(low, value, high float64) loader.Est {
		return unit.Some(stat.Estimate{Value: value, Low: low, High: high, N: 4})
	}
	for _, c := range []struct {
		name                       string
		thread, wait, cached, want float64
		live                       loader.Est
	}{
		{"behind", 0.043, 0.040, 0.048, 0.048, between(0.0479, 0.048, 0.0481)},
		{"behind, of two blocks", 0.043, 0.040, 0.048, 0.048, between(0, 0.048, 0.2)},
		{"longer within their spread", 0.043, 0.040, 0.020, 0.043, between(0.040, 0.044, 0.048)},
		{"longer for certain", 0.043, 0.040, 0.042, 0.046, between(0.045, 0.046, 0.047)},
		{"it waits for the device", 0.043, 0.001, 0.042, 0.043, between(0.045, 0.046, 0.047)},
		{"no test timed it", 0.043, 0.040, 0.048, 0.043, loader.Est{}},
	} {
		p := scenario.S02(1).Parameters()
		p.Step.Seconds, p.Step.Wait, p.Step.Cached, p.Step.Live = est(c.thread), est(c.wait), est(c.cached), c.live
		near(t, c.name, loader.New(p).Pace.Or(stat.Estimate{}).Value, c.want)
	}
}

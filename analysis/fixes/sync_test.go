package fixes

import (
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
)

// S21 without the wait between: 25 ms of the training process beside 15 ms of the device are 25 ms and a hand-off, where one after the
// other they are 40. Whether that wait is needed nobody measured, so it stands behind what is certain to help.
func TestASynchronisationPutsHostAndDeviceInTurn(t *testing.T) {
	r := rank(scenario.S21(), nil)
	f, ok := find(r, RemoveSync)
	step, saved := f.Predicted.StepSeconds.Or(zero), f.Predicted.StepSavedShare.Or(zero)
	if !ok || math.Abs(step.Value-0.0261) > 0.0003 || saved.Low > 0 || f.Position == 1 {
		t.Errorf("%v: %+v, saved %+v", ids(r), step, saved)
	}
	spins := rank(scenario.S21(), func(p *loader.Parameters) { p.Step.MainCPU = some(0.040) })
	if f, ok := find(spins, RemoveSync); ok {
		t.Errorf("a thread that is on the CPU all the time may be busy itself: %+v", f)
	}
	if f, ok := find(rank(scenario.S26(), nil), RemoveSync); ok {
		t.Errorf("there is no host work to hide: %+v", f)
	}
}

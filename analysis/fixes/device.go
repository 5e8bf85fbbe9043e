package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// coolingOrPower lets the GPU run at its clock (F80).
func coolingOrPower(j *job, s state) proposal {
	t, ok := j.model.Throttled()
	if !ok || !t.Slower {
		return proposal{}
	}
	p := proposal{title: "cool the GPU", effort: hardware, how: "look at fans, airflow and the temperature of the air that comes in (nvidia-smi -q -d TEMPERATURE,PERFORMANCE)"}
	switch t.By {
	case loader.ByPowerLimit:
		p.title, p.how = "raise the GPU's power limit", "nvidia-smi -pl, up to the highest that nvidia-smi -q -d POWER shows, where supply and cooling allow"
	case loader.ByBoard:
		p.title, p.how = "find out why the board slows the GPU down", "a power brake or a slowdown of the hardware: power supply, cables, cooling (nvidia-smi -q -d PERFORMANCE,POWER)"
	}
	switch {
	case j.hidden(s):
		p.zero = j.hides()
	case j.waitsForData(s):
		return proposal{}
	case !t.Measured:
		p.unpriced = "how much longer steps take at this clock was not seen: none ran at another"
	default:
		longer, of := j.p.Device.Clock.Longer.Or(zero), j.p.Device.Clock.Steps.Or(0)
		lost := func(x float64) float64 { return math.Max(0, of*x/(1+of*x)) * s.law.Compute }
		faster := func(x float64) func(*state) { return func(s *state) { s.shorten(lost(x)) } }
		p.assumes = []string{fmt.Sprintf("the %s of steps in which the clock is held down then take as long as the others (interval: that of the difference)", phrase.Percent(of))}
		p.change, p.best, p.worst = faster(longer.Value), faster(longer.High), faster(longer.Low)
	}
	return p
}

// reseatLink brings the PCIe link to what card and slot can do.
func reseatLink(j *job, s state) proposal {
	n, ok := j.model.LinkBound()
	if !ok || !n.Bound {
		return proposal{}
	}
	p := proposal{
		title: "bring the PCIe link to its full width and speed", effort: hardware,
		how: fmt.Sprintf("generation %d with %d lanes now, generation %d with %d possible: reseat the card, try another slot, look for PCIe errors in the kernel's log",
			n.Generation, n.Lanes, n.MostGeneration, n.MostLanes),
	}
	switch {
	case j.hidden(s):
		p.zero = j.hides()
	case !j.p.Step.Copy.IsKnown():
		p.unpriced = "how much of a step is an exposed copy was not measured (diagnose: leg device-cached)"
	default:
		p.assumes = []string{"copies take as much less time as the link gets wider (interval: half of that)"}
		p.change, p.worst = lessCopy(1-n.Part), lessCopy((1-n.Part)/2)
	}
	return p
}

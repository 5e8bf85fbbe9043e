package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/probe/unit"
)

// clockThrottle: something holds the clock down, and steps are slower for it (F80; fixture M8).
func clockThrottle(s *subject) opinion {
	t, ok := s.m.Throttled()
	if !ok || !s.judge {
		return opinion{}
	}
	clock := "the clock"
	if g := s.p.Device.Clock.GPU; g != "" && s.p.GPUs > 1 {
		clock += " of " + g
	}
	held := fmt.Sprintf("%s holds %s down for %s of the time the GPU works", t.By, clock, phrase.Percent(t.Share))
	if of, ok := t.Of.Get(); ok {
		held += fmt.Sprintf(", to %s of the highest on average", phrase.Percent(of))
	}
	switch {
	case s.gain >= Notable:
		return drop(held + "; the step waits for data")
	case t.Measured && !t.Slower:
		return drop(held + "; steps are not slower for it")
	case !t.Slower:
		return drop(held + "; whether steps are slower for it was not seen, for none ran at a clock that is not held down")
	}
	c := s.p.Device.Clock
	v := Verdict{
		Title: held, Confidence: s.sure(0.6), Share: unit.None[float64]("no step at a clock that is not held down was seen to compare with"),
		Evidence: s.wait().num("thermal_ratio", c.Thermal, "ratio", byDriver).num("hardware_ratio", c.Hardware, "ratio", byDriver).
			num("power_cap_ratio", c.PowerCap, "ratio", byDriver).num("clock_of_highest", t.Of, "ratio", byDriver).num("power_of_limit", s.p.Device.Power, "ratio", byDriver),
		FalsifiedBy: "steps at the full clock that are no shorter",
	}
	if !t.Measured {
		return opinion{verdict: v, found: true, weight: Notable}
	}
	longer := c.Longer.Or(none)
	v.Title += fmt.Sprintf(", and steps take %s longer meanwhile", phrase.Percent(longer.Value))
	v.Confidence = s.sure(0.85)
	v.Evidence = append(v.Evidence, Evidence{"longer_while_held_down", longer.Value, "ratio", bySteps})
	return find(v, s.share(t.Lost))
}

// pcieLink: the link is below what card and slot can do, all the time, and copies suffer.
func pcieLink(s *subject) opinion {
	n, ok := s.m.LinkBound()
	if !ok || !s.judge {
		return opinion{}
	}
	title := fmt.Sprintf("the PCIe link runs at generation %d with %s while the GPU works, %s of what card and slot can do together",
		n.Generation, phrase.Count(float64(n.Lanes), "lane"), phrase.Percent(n.Part))
	switch {
	case s.hidesCompute():
		return drop(title + "; the step waits for data")
	case !n.Bound && !n.Used.IsKnown() && !s.p.Step.Copy.IsKnown():
		return drop(title + "; whether copies wait for it was not measured")
	case !n.Bound:
		return drop(title + "; hardly anything waits for it")
	}
	v := Verdict{
		Title: title + ", and copies wait for it", Confidence: s.sure(0.8), Share: unit.None[float64]("how long copies hold a step up was not measured"),
		Evidence: s.wait().est("copy_seconds", s.p.Step.Copy, "seconds", byTest).num("link_below_most_ratio", n.Narrow, "ratio", byDriver).
			num("link_used_ratio", n.Used, "ratio", byGPU).num("pcie_in_bytes_per_second", n.In, "bytes", byGPU),
		FalsifiedBy: "a run in another slot, or after a reset, whose copies take as long",
	}
	if !s.p.Step.Copy.IsKnown() {
		return opinion{verdict: v, found: true, weight: Notable}
	}
	return find(v, s.share(n.Lost))
}

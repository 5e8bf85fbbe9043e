package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/stat"
)

// fillCompute finds C, the step with its batches in memory, from the best witness there is.
func (m *Model) fillCompute() {
	s := m.Parameters.Step
	m.Pace = s.Seconds
	c, ok := m.ceiling()
	if !ok {
		return
	}
	m.Known.Compute = true
	m.grade = stat.Worse(m.grade, c.Grade)
	m.Law.Compute = c.Value
	m.vary(c, func(l *Law, v float64) { l.Compute = v })
	if copied, ok := s.Copy.Get(); ok {
		m.Law.Copy = math.Min(copied.Value, c.Value)
	}
	m.fillAhead()
	m.fillPace()
}

// ceiling returns C: measured on cached batches; else the live step less the wait that the device felt; else less the whole
// wait. The last is a lower bound, because launches run ahead and the device may compute through the wait (F59).
func (m *Model) ceiling() (stat.Estimate, bool) {
	s := m.Parameters.Step
	if c, ok := s.Cached.Get(); ok && c.Value > 0 {
		m.Known.Cached = true
		return m.withInterference(m.notAboveLive(c)), true
	}
	t, ok := s.Seconds.Get()
	if !ok {
		return stat.Estimate{}, false
	}
	if exposed, ok := s.Exposed.Get(); ok && exposed.Value <= t.Value {
		m.assume("a step without loading takes what is left of a live one without its exposed wait (no cached-data test ran)")
		return inferred(t, exposed, stat.GradeB), true
	}
	wait, ok := s.Wait.Get()
	if !ok || wait.Value > t.Value {
		return stat.Estimate{}, false
	}
	m.assume("the device computes nothing while the training thread waits, so a step without loading takes step − wait (no cached-data test ran); it may take longer")
	return inferred(t, wait, stat.GradeC), true
}

// notAboveLive lowers a C that lies above the live step by no more than its interval: a step cannot take longer because its batches
// are there, so the two are one measurement, and the live one has more steps. A C that is clearly above stays, and the check fails.
func (m *Model) notAboveLive(c stat.Estimate) stat.Estimate {
	t, ok := m.Parameters.Step.Seconds.Get()
	if !ok || c.Value <= t.Value || c.Low > t.Value {
		return c
	}
	m.assume("cached steps were not faster than live ones; the difference is within their spread")
	c.Value = math.Max(c.Low, math.Max(0, t.Value-m.Parameters.Step.Wait.Or(noEstimate).Value))
	c.High = math.Max(c.Value, t.Value)
	return c
}

// withInterference lets C reach to what it is while workers are busy, as far as live steps bear it out: what a live step takes
// outside next() is measured beside busy workers.
func (m *Model) withInterference(c stat.Estimate) stat.Estimate {
	s := m.Parameters.Step
	t, okStep := s.Seconds.Get()
	wait, okWait := s.Wait.Get()
	if slow, ok := s.Interference.Get(); ok && okStep && okWait {
		c.High = math.Max(c.High, math.Min(c.Value+slow, t.Value-wait.Value))
	}
	return c
}

// inferred is t − part at a grade no better than g.
func inferred(t, part stat.Estimate, g stat.Grade) stat.Estimate {
	e := less(t, part)
	e.Grade = stat.Worse(g, e.Grade)
	e.Source = "live step less data wait"
	return e
}

// fillHost finds the part of C in which the training process computes and the device does not.
func (m *Model) fillHost() {
	resident, ok := m.Parameters.Device.Resident.Get()
	cpu, okCPU := m.Parameters.Step.MainCPU.Get()
	t, okT := m.Pace.Get()
	m.Law.MainCPU = cpu
	if !ok || !okCPU || !okT || !m.Known.Compute {
		return
	}
	m.Known.Host = true
	idle := m.Law.Compute - resident*t.Value - m.Law.Copy
	m.Law.Host = math.Max(0, math.Min(idle, cpu))
}

// TypicalHandoff stands in where no hand-off was measured: next() on a full queue took 1.1–1.5 ms on two cores with PyTorch 1.13.
const TypicalHandoff = 1.5e-3

// fillHandoff finds what a finished batch costs on its way to the training thread: what the thread itself does (unpickle, map, order),
// which every batch costs, and what happens before (pickling, the pipe, waking up), of which a batch that is there early
// shows nothing. A busy machine makes the second long where every batch is waited for; it is not what is left with more workers.
func (m *Model) fillHandoff() {
	s := m.Parameters.Step
	take, okTake := s.HandoffReady.Get()
	late, okLate := s.HandoffLate.Get()
	mean, okMean := s.Handoff.Get()
	floor, okFloor := s.HandoffFloor.Get()
	set := func(l *Law, v float64) { l.Handoff, l.Feed = v, math.Max(0, late-v) }
	switch {
	case m.Law.Workers == 0:
	case okTake:
		set(&m.Law, take)
		m.varyBy(0.2*take, 0.2*take, take, set)
	case okLate:
		if !okFloor {
			floor = TypicalHandoff
		}
		take = math.Min(late, floor)
		set(&m.Law, take)
		m.unmeasured(0, take, late, set)
		m.assume("a batch that is there before it is asked for is taken over as on a quiet machine (none was)")
	case okMean || okFloor:
		if take = mean; !okMean {
			take = floor
		}
		set(&m.Law, take)
		m.varyBy(0.2*take, 0.2*take, take, set)
	default:
		m.unmeasured(0, 0, TypicalHandoff, set)
	}
}

// assume notes something the law takes for granted.
func (m *Model) assume(what string) { m.Assumed = append(m.Assumed, what) }

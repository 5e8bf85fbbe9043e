package loader

import "math"

// Thresholds of fillShared, relative: how much longer a build must be off the CPU in company than alone.
const (
	grows    = 0.20 // of the time alone: beyond this, builds hold each other up
	material = 0.05 // of the whole build: below this the question does not matter
	company  = 1.3  // builds in progress at a time, on average, from which company can be told from solitude
)

// fillShared decides whether the off-CPU part is a latency, which workers hide from each other, or time on something exclusive
// that they queue for: a full link, one spindle, a lock (F28, F30, F46; scenario S03, where the median wait falls with W and
// nothing improves).
//
// With n builds in progress, an exclusive resource that takes x per batch and is never idle delivers one batch every x, so by
// Little's law a build takes n·x. Off-CPU time that grows with company therefore says both that x binds and that x = L/n;
// the time alone bounds it. Where such a resource is the limit, all W workers queue for it: n is W then, and not what the measured step
// makes of it, or the check would find what was put in. Off-CPU time that does not grow is latency. Without builds alone the question stays open: the
// law assumes latency and the interval reaches to the other answer.
func (m *Model) fillShared() {
	if !m.Known.Build || m.Law.Off <= 0 {
		m.Known.Shared = m.Known.Build
		return
	}
	alone, okAlone := m.Parameters.Solo.OffCPU.Get()
	off, okOff := m.Parameters.Batch.OffCPU.Get()
	n := m.inProgress()
	switch {
	case !okAlone || !okOff || n < company:
		m.sharedUnknown("none was measured alone and in company")
		return
	case m.crowdedByHelpers():
		m.sharedUnknown("what they wait for their helper threads hides it")
		return
	}
	m.Known.Shared = true
	excess := off.Value - alone.Value
	if excess > grows*alone.Value && excess > material*(off.Value+m.Law.CPU) {
		x := math.Min(m.longestHold(alone.Value), m.wallInCompany()/n)
		m.Law.Shared, m.Law.Off = x, math.Max(x, m.Law.Off)
		m.varyBy(x*relative(off.Value, off.Low), x*relative(off.High, off.Value), x, func(l *Law, v float64) { l.Shared = v })
		return
	}
	// Not saturated: what growth there is bounds the exclusive part from above.
	most := math.Max(0, off.High-alone.Low) / (n - 1)
	m.varyBy(0, math.Min(most, alone.Value), 0, func(l *Law, v float64) { l.Shared = v })
}

// longestHold bounds the time per batch on an exclusive resource: the off-CPU time alone, of every rank that queues. Where builds hardly
// compute, a build may hold the resource while it waits for a core as well, so its whole time alone is the bound.
func (m *Model) longestHold(alone float64) float64 {
	hold := alone
	if wall, ok := m.Parameters.Solo.Wall.Get(); ok && alone > 0.5*wall.Value {
		hold = math.Max(hold, wall.Value-m.Law.CPU)
	}
	return hold * float64(max(m.Parameters.Host.Ranks, 1))
}

// wallInCompany is L as it was measured.
func (m *Model) wallInCompany() float64 {
	if wall, ok := m.Parameters.Batch.Wall.Get(); ok {
		return wall.Value
	}
	return m.Parameters.Batch.OffCPU.Or(noEstimate).Value + m.Parameters.Batch.RunQueue.Or(0) + m.Law.CPU
}

// sharedUnknown lets the interval reach to the case that all off-CPU time is exclusive, as far as the step that ran allows it.
func (m *Model) sharedUnknown(why string) {
	m.assume("builds do not hold each other up outside the CPU (" + why + ")")
	most := m.Law.Off
	if t, ok := m.Parameters.Step.Seconds.Get(); ok && m.Law.Workers > 0 {
		most = math.Min(most, t.Value/m.Law.Fetches)
	}
	m.unmeasured(0, 0, most, func(l *Law, v float64) { l.Shared = v })
}

// inProgress is the number of builds under way at a time: W where next to all workers always have one, else their mean (Little's law).
func (m *Model) inProgress() float64 {
	w := float64(m.Law.Workers)
	wall, ok := m.Parameters.Batch.Wall.Get()
	t, okT := m.Parameters.Step.Seconds.Get()
	if !ok || !okT || t.Value <= 0 {
		return w
	}
	if n := m.Law.Fetches * wall.Value / t.Value; n < nearlyAll*w {
		return n
	}
	return w
}

// nearlyAll is the part of the workers that must have a build under way for all of them to.
const nearlyAll = 0.8

// relative is (a − b)/a, 0 where a is 0.
func relative(a, b float64) float64 {
	if a <= 0 {
		return 0
	}
	return math.Abs(a-b) / a
}

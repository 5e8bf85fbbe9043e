package loader

import "math"

// sooner is the part of a step by which the training thread must come back before the device is done, for launches to run ahead.
const sooner = 0.05

// fillAhead finds whether the training thread comes back to next() before the device is done. Then the device has something to run
// while the thread waits: a host that waits half of the time beside a busy device loses nothing. It is a step behind at the least.
func (m *Model) fillAhead() {
	m.Law.Outside = m.Law.Compute
	s := m.Parameters.Step
	t, ok := s.Seconds.Get()
	wait, okWait := s.Wait.Get()
	if !ok || !okWait {
		return
	}
	if host := math.Max(0, t.Value-wait.Value); host < m.Law.Compute-sooner*t.Value {
		m.Law.Outside, m.Law.Ahead = host, int(math.Ceil(m.Law.Fetches))
	}
}

// fillPace finds who sets the pace. A thread whose launches run ahead of the device is done with a step long before the device is: forty
// steps of 42 ms leave a device that takes 48 ms with a quarter of a second still to do, and the step is the device's (scenario F59).
// Where the two agree within their spread the thread's is better known, for the test's live blocks are few.
func (m *Model) fillPace() {
	live, ok := m.Parameters.Step.Live.Get()
	t, okStep := m.Parameters.Step.Seconds.Get()
	if !ok || !okStep || m.Law.Ahead == 0 {
		return
	}
	if live.Low > t.Value || live.Value > t.Value && t.Value < m.Law.Compute {
		m.Pace = someEst(live)
	}
}

// deepest is how many steps the device is taken to be behind at most. CUDA takes about a thousand launches before one blocks, and a step has
// tens at the least.
const deepest = 64

// fillDepth finds how far the device may be behind: the least with which the replay leaves it without work no longer than its clock says.
// What a longer queue hides of uneven builds is found with it. Without that clock it stays one step.
func (m *Model) fillDepth() {
	if m.Law.Ahead == 0 {
		return
	}
	step, behind := m.Law.Ahead, 1
	played := m.film.play(m.Law)
	exposed, ok := m.Parameters.Step.Exposed.Get()
	for ok && behind < deepest && played.Starved > exposed.Value+unworthy*played.Seconds {
		longer := m.Law
		longer.Ahead = 2 * behind * step
		next := m.film.play(longer)
		if !(next.Starved < played.Starved-unworthy*played.Seconds) {
			break
		}
		m.Law, played, behind = longer, next, 2*behind
	}
	m.assume("the device is at most " + plural(behind, "one step", "steps") + " behind the training thread")
}

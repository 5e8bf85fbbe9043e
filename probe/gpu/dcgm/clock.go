package dcgm

// engineClock ties the host engine's wall clock to our CLOCK_MONOTONIC. Every read of values is a pair: the engine says when
// it answered, and we know when we asked and when the answer came.
//
// The engine's clock is set by NTP like any other. A step shows as a pair that the one before does not explain; samples from
// around it are placed by whichever pair puts them into the time since the last read, and by none if both or neither do.
type engineClock struct {
	now, before pair // before = the clock as it was until it was stepped
	stepped     bool // before is of use
	steps       int
	residual    int64 // ns, half the round trip of the pair in use: how far off it may be
}

// pair is one moment on both clocks, in ns.
type pair struct{ engine, mono int64 }

// tolerated is how far two pairs may disagree before it counts as a step: slewing and round trips stay below.
const tolerated = 50e6

// tick takes the answer of one read: engine time in ns, our time before and after the call.
func (c *engineClock) tick(engine, asked, answered int64) {
	p := pair{engine, asked + (answered-asked)/2}
	half := (answered - asked) / 2
	if c.now == (pair{}) {
		c.now, c.residual = p, half
		return
	}
	moved := (p.engine - p.mono) - (c.now.engine - c.now.mono)
	if abs(moved) > tolerated+half {
		c.before, c.stepped = c.now, true
		c.steps++
	}
	c.now, c.residual = p, half
}

// settle forgets the clock before a step, once no sample from then can still come.
func (c *engineClock) settle(oldest int64) {
	if c.stepped && c.before.mono < oldest {
		c.stepped = false
	}
}

// mono returns our time of an engine time in ns. It must lie after since, the end of what was placed before, and not in the future.
func (c *engineClock) mono(engine, since int64) (int64, bool) {
	at := func(p pair) int64 { return p.mono + engine - p.engine }
	fits := func(t int64) bool { return t > since && t <= c.now.mono+tolerated }
	now := at(c.now)
	if !c.stepped {
		return now, now <= c.now.mono+tolerated
	}
	before := at(c.before)
	switch {
	case fits(now) && !fits(before):
		return now, true
	case fits(before) && !fits(now):
		return before, true
	}
	return 0, false
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

package dcgm

// engineClock ties the host engine's wall clock to our CLOCK_MONOTONIC. Every read of values is a pair: the engine says when
// it answered, and we know when we asked and when the answer came. The pair of the shortest round trip is used until it is old.
//
// The engine's clock is set by NTP like any other. A step shows as a pair that the one before does not explain; samples from
// around it are placed by whichever pair puts them into the time since the last read, and by none if both or neither do.
type engineClock struct {
	now, before pair  // before = the clock as it was until it was stepped
	half        int64 // ns, half the round trip of now: how far off it may be
	latest      int64 // ns, our time of the newest answer
	stepped     int64 // ns, our time when a step was seen; 0 = before is of no use
	steps       int
}

// pair is one moment on both clocks, in ns.
type pair struct{ engine, mono int64 }

const (
	tolerated = 50e6 // ns by which pairs may disagree beyond their round trips before it counts as a step
	drift     = 5e-4 // s of error that a second of age adds: NTP slews a clock at most so fast (adjtime(3))
)

// tick takes the answer of one read: engine time in ns, our time before and after the call.
func (c *engineClock) tick(engine, asked, answered int64) {
	half := (answered - asked) / 2
	p := pair{engine, asked + half}
	known := c.now != pair{}
	error := c.half + int64(drift*float64(p.mono-c.now.mono))
	moved := (p.engine - p.mono) - (c.now.engine - c.now.mono)
	c.latest = answered
	switch {
	case known && abs(moved) > tolerated+half+error:
		c.before, c.stepped = c.now, p.mono
		c.steps++
	case known && half > error:
		return
	}
	c.now, c.half = p, half
}

// settle forgets the clock before a step, once no sample from then can still come.
func (c *engineClock) settle(oldest int64) {
	if c.stepped < oldest {
		c.stepped = 0
	}
}

// engine returns the engine's time at a time of ours, in ns; 0 before the first tick.
func (c *engineClock) engine(mono int64) int64 {
	if c.now == (pair{}) {
		return 0
	}
	return c.now.engine + mono - c.now.mono
}

// mono returns our time of an engine time in ns. It must not lie in the future, and around a step after since, the end of what was placed before.
func (c *engineClock) mono(engine, since int64) (int64, bool) {
	at := func(p pair) int64 { return p.mono + engine - p.engine }
	fits := func(t int64) bool { return t > since && t <= c.latest+tolerated }
	now := at(c.now)
	if c.stepped == 0 {
		return now, now <= c.latest+tolerated
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

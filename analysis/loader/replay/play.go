package replay

import "math"

// Player plays setups, one after the other, in memory that it keeps. The zero Player is ready. It is for one goroutine.
type Player struct {
	arrives []float64 // of the W·P batches under way, by their slot
	free    []float64 // of each worker: the end of the last build it was asked for
	fed     []float64 // of each worker: the arrival of its last batch
	ends    []float64 // of the device's last batches, by slot
	setup   Setup
	single  lane    // of builds that share cores
	lanes   []*lane // of ranks that wait for one another
}

// Play plays so many batches, once the queue has settled, and returns what one took.
func (p *Player) Play(setup Setup, t Tape, batches int) Outcome {
	if len(t) == 0 {
		t = alike
	}
	p.setup = setup // here, or every replay would leave something for the collector
	s := &p.setup
	if !s.sane() {
		return nothing
	}
	s.Prefetch = max(s.Prefetch, 1)
	round := max(s.Workers, 1)
	batches = max(1, batches/round) * round // whole rounds: workers that go in step deliver W batches at a time
	settle := 2 * round * s.Prefetch
	switch {
	case s.Crowded():
		return p.crowd(s, t, settle, batches)
	case s.Workers == 0:
		return p.alone(s, t, settle, batches)
	case s.OutOfOrder && s.Workers > 1:
		return p.unordered(s, t, settle, batches)
	}
	return p.ordered(s, t, settle, batches)
}

// consumer is the training thread and its device.
type consumer struct {
	setup   *Setup
	now     float64 // the thread is back in next()
	device  float64 // has nothing to run from here on
	ends    []float64
	slot    int
	waited  float64
	starved float64
}

func (p *Player) consumer(s *Setup) consumer {
	p.ends = grown(p.ends, s.Ahead)
	return consumer{setup: s, ends: p.ends}
}

// step trains on a batch that arrives then, and returns when the next index was sent: once the batch had been taken over.
func (c *consumer) step(arrives float64, shape float32) (taken float64) {
	s := c.setup
	taken = max(c.now, arrives) + s.Take
	c.waited += taken - c.now
	if s.Ahead == 0 {
		c.starved += taken - c.now
		c.now = taken + s.Outside*float64(shape)
		return taken
	}
	c.starved += max(0, taken-c.device)
	c.device = max(c.device, taken) + s.Device*float64(shape)
	c.now = max(taken+s.Outside*float64(shape), c.ends[c.slot])
	c.ends[c.slot] = c.device
	if c.slot++; c.slot == s.Ahead {
		c.slot = 0
	}
	return taken
}

// begin forgets what was counted while the queue settled.
func (c *consumer) begin() (start float64) {
	c.waited, c.starved = 0, 0
	return c.trained()
}

// trained is when training on the last batch ended. The training thread may be further by what the device has still to run.
func (c *consumer) trained() float64 {
	if c.setup.Ahead > 0 {
		return c.device
	}
	return c.now
}

func (c *consumer) outcome(start float64, batches int) Outcome {
	n := float64(batches)
	return Outcome{Seconds: (c.trained() - start) / n, Wait: c.waited / n, Starved: c.starved / n}
}

// alone plays a training thread that builds its batches itself.
func (p *Player) alone(s *Setup, t Tape, settle, batches int) Outcome {
	c := p.consumer(s)
	start, row := 0.0, 0
	for b := range settle + batches {
		if b == settle {
			start = c.begin()
		}
		x := &t[row]
		c.step(c.now+s.waits(x)+s.burns(x), x.Outside)
		if row++; row == len(t) {
			row = 0
		}
	}
	return c.outcome(start, batches)
}

// ordered plays workers that have a core each. A worker's builds follow one another, so each one's end is known as soon as
// its index is sent, and indices are sent in the order of the batches: no event needs to be looked for.
func (p *Player) ordered(s *Setup, t Tape, settle, batches int) Outcome {
	depth := s.Workers * s.Prefetch
	p.ready(s.Workers, depth)
	asked := 0
	for slot := range depth {
		p.arrives[slot] = p.build(s, slot%s.Workers, 0, &t[asked])
		if asked++; asked == len(t) {
			asked = 0
		}
	}
	c := p.consumer(s)
	start, row, slot, worker := 0.0, 0, 0, 0
	for b := range settle + batches {
		if b == settle {
			start = c.begin()
		}
		taken := c.step(p.arrives[slot], t[row].Outside)
		p.arrives[slot] = p.build(s, worker, taken, &t[asked])
		if row++; row == len(t) {
			row = 0
		}
		if asked++; asked == len(t) {
			asked = 0
		}
		if slot++; slot == depth {
			slot = 0
		}
		if worker++; worker == s.Workers {
			worker = 0
		}
	}
	return c.outcome(start, batches)
}

// build has a worker build one batch more and returns when it arrives.
func (p *Player) build(s *Setup, worker int, sent float64, x *Batch) (arrives float64) {
	end := max(sent, p.free[worker]) + s.waits(x) + s.burns(x)
	arrives = max(end, p.fed[worker]) + s.Feed
	p.free[worker], p.fed[worker] = end, arrives
	return arrives
}

// unordered plays in_order=False: whatever arrives next is delivered, and its worker, the only one with room, is asked for more.
func (p *Player) unordered(s *Setup, t Tape, settle, batches int) Outcome {
	depth := s.Workers * s.Prefetch
	p.ready(s.Workers, depth)
	asked := 0
	for place := range s.Prefetch {
		for w := range s.Workers {
			p.arrives[w*s.Prefetch+place] = p.build(s, w, 0, &t[asked])
			if asked++; asked == len(t) {
				asked = 0
			}
		}
	}
	c := p.consumer(s)
	start := 0.0
	for b := range settle + batches {
		if b == settle {
			start = c.begin()
		}
		first, at := 0, math.Inf(1)
		for w := range s.Workers { // a worker's batches arrive in order: its oldest is its first
			if a := p.arrives[w*s.Prefetch]; a < at {
				first, at = w, a
			}
		}
		taken := c.step(at, t[b%len(t)].Outside)
		queue := p.arrives[first*s.Prefetch:][:s.Prefetch]
		copy(queue, queue[1:])
		queue[s.Prefetch-1] = p.build(s, first, taken, &t[asked])
		if asked++; asked == len(t) {
			asked = 0
		}
	}
	return c.outcome(start, batches)
}

func (p *Player) ready(workers, depth int) {
	p.arrives = grown(p.arrives, depth)
	p.free, p.fed = grown(p.free, workers), grown(p.fed, workers)
}

// grown returns n zeros, in the memory of v where that is enough.
func grown(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	v = v[:n]
	clear(v)
	return v
}

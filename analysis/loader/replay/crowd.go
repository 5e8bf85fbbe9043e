package replay

import "math"

// crew is workers that hold each other up, at one moment.
type crew struct {
	setup   *Setup
	tape    Tape
	row     int // of the tape: the batch that is asked for next
	now     float64
	locked  float64 // until then something exclusive is in use
	workers []worker
	rows    []int     // P batches a worker, by their row of the tape: what it was asked for and has not delivered, in a ring
	arrives []float64 // of each of them; +Inf until built
	turn    int       // worker whose batch is delivered next, where order matters
	built   agenda    // batches that were built, by their arrival, where it does not
	waiting agenda    // builds off the CPU, by the time when they come to it
	burning agenda    // builds on the CPU, by the work at which they end
	work    float64   // CPU seconds that every build on the CPU got since some time: they share evenly
	queued  float64   // Σ over builds: runnable but without a core

	rates      []float64 // by builds on the CPU: how much of a CPU second each gets in a second, just now
	idle, busy []float64 // the same while the training process keeps no cores busy, and while it does
}

// worker is what one of them does. Its places in the ring are taken in turn: by what it is asked for, by what it builds, by what it
// delivers.
type worker struct {
	builds int // place of its batch; −1 = nothing
	cpu    float64
	begun  int // place of the first that was not begun
	length int // not begun
	oldest int // place of the first that was not delivered
	fed    float64
}

// crowd plays them event by event.
func (p *Player) crowd(s *Setup, t Tape, settle, batches int) Outcome {
	l := &p.single
	l.begin(*s, Lane{Tape: t, Build: 1})
	start := 0.0
	for b := range settle + batches {
		if b == settle {
			start, l.crew.queued = l.consumer.begin(), 0
		}
		if !l.step() {
			return nothing
		}
	}
	return l.outcome(start, batches)
}

func (k *crew) reset(s *Setup, t Tape) {
	k.setup, k.tape, k.row, k.now, k.locked, k.turn, k.work, k.queued = s, t, 0, 0, 0, 0, 0, 0
	depth := s.Workers * s.Prefetch
	if cap(k.workers) < s.Workers {
		k.workers = make([]worker, s.Workers)
	}
	if cap(k.rows) < depth {
		k.rows = make([]int, depth)
	}
	k.workers, k.rows, k.arrives = k.workers[:s.Workers], k.rows[:depth], grown(k.arrives, depth)
	for i := range k.workers {
		k.workers[i] = worker{builds: -1}
	}
	for i := range k.arrives {
		k.arrives[i] = math.Inf(1)
	}
	k.waiting.reset(s.Workers)
	k.burning.reset(s.Workers)
	k.built.reset(depth)
	k.idle, k.busy = grown(k.idle, s.Workers+1), grown(k.busy, s.Workers+1)
	for n, load := 0, s.load(); n <= s.Workers; n++ {
		k.idle[n], k.busy[n] = s.share(n, 0), s.share(n, load)
	}
	k.rates = k.idle
}

// ask sends a worker the next index.
func (k *crew) ask(i int) {
	w, p := &k.workers[i], k.setup.Prefetch
	place := w.begun + w.length
	if place >= p {
		place -= p
	}
	k.rows[i*p+place] = k.row
	w.length++
	if k.row++; k.row == len(k.tape) {
		k.row = 0
	}
	if w.builds < 0 {
		k.begin(i)
	}
}

// begin has an idle worker begin the oldest batch it was asked for.
func (k *crew) begin(i int) {
	w, s := &k.workers[i], k.setup
	if w.length == 0 {
		return
	}
	w.builds = w.begun
	if w.begun++; w.begun == s.Prefetch {
		w.begun = 0
	}
	w.length--
	x := &k.tape[k.rows[i*s.Prefetch+w.builds]]
	free := k.now
	waits := s.waits(x)
	if held := s.Exclusive; held > 0 && s.Wait > 0 {
		held *= waits / s.Wait
		free = max(free, k.locked)
		k.locked = free + held
	}
	w.cpu = s.burns(x)
	if until := free + waits; until <= k.now {
		k.burn(i)
	} else {
		k.waiting.add(due{until, i})
	}
}

// burn puts a worker on the CPU, if it has something to compute there.
func (k *crew) burn(i int) {
	cpu := k.workers[i].cpu
	if cpu <= 0 {
		k.finish(i)
		return
	}
	if k.burning.len() == 0 {
		k.work = 0 // small numbers stay exact
	}
	k.burning.add(due{k.work + cpu, i})
}

// finish ends a build and begins the next one.
func (k *crew) finish(i int) {
	w, s := &k.workers[i], k.setup
	w.fed = max(k.now, w.fed) + s.Feed
	k.arrives[i*s.Prefetch+w.builds] = w.fed
	if s.OutOfOrder {
		k.built.add(due{w.fed, i})
	}
	w.builds = -1
	k.begin(i)
}

// advance goes on to a time.
func (k *crew) advance(to float64) {
	for k.now < to && k.event(to) {
	}
}

// event goes on to the next event, at most to the limit; false if nothing ever happens again. Of several at one time, the others follow.
func (k *crew) event(limit float64) bool {
	builds := k.burning.len()
	rate := k.rates[builds]
	at, comes, ends := limit, false, false
	if until := k.waiting.next; until <= at {
		at, comes = until, true
	}
	if end := k.now + (k.burning.next-k.work)/rate; end <= at {
		at, ends = end, true
	}
	if at < k.now {
		at = k.now
	}
	if math.IsInf(at, 1) {
		return false
	}
	k.queued += float64(builds) * (at - k.now) * (1 - rate)
	k.work += rate * (at - k.now)
	k.now = at
	switch {
	case ends:
		k.work = k.burning.next
		k.finish(k.burning.take())
	case comes:
		k.burn(k.waiting.take())
	}
	return true
}

// await goes on until the batch that is delivered next was built, and returns whose it is and when it arrives: +Inf, and nobody's, if
// it never does, because a tape holds what is no time.
func (k *crew) await() (who int, arrives float64) {
	if k.setup.OutOfOrder {
		for k.built.next > k.now && k.event(k.built.next) {
		}
		if arrives = k.built.next; math.IsInf(arrives, 1) {
			return -1, arrives
		}
		return k.built.take(), arrives
	}
	who = k.turn
	if k.turn++; k.turn == len(k.workers) {
		k.turn = 0
	}
	place := who*k.setup.Prefetch + k.workers[who].oldest
	for math.IsInf(k.arrives[place], 1) && k.event(math.Inf(1)) {
	}
	return who, k.arrives[place]
}

// deliver takes a worker's oldest batch over and asks it for another.
func (k *crew) deliver(who int) {
	w, p := &k.workers[who], k.setup.Prefetch
	k.arrives[who*p+w.oldest] = math.Inf(1)
	if w.oldest++; w.oldest == p {
		w.oldest = 0
	}
	k.ask(who)
}

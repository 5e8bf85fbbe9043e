package replay

import "math"

// crew is workers that hold each other up, at one moment.
type crew struct {
	setup   *Setup
	tape    Tape
	now     float64
	load    float64 // cores that the training process keeps busy just now
	locked  float64 // until then something exclusive is in use
	workers []worker
	queues  []int     // P batches a worker, oldest first: what it was asked for and has not begun
	arrives []float64 // by slot; +Inf until built
	until   []float64 // of each worker: when its waiting off the CPU ends; +Inf if it does not wait
	work    float64   // CPU seconds that every build on the CPU got since some time: they share evenly
	ends    []float64 // of each worker: the work at which its build ends; +Inf if it is not on the CPU
	burning int       // workers on the CPU
	queued  float64   // Σ over builds: runnable but without a core
	asked   int       // batches
	order   []float64 // arrivals of an unordered worker's batches, P a worker, oldest first
}

// worker is what one of them does.
type worker struct {
	batch  int // −1 = nothing
	cpu    float64
	begun  int // first of its queue that was not begun
	length int // of its queue
	fed    float64
	ready  int // built and not delivered, where order does not matter
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
		l.step(b)
	}
	return l.outcome(start, batches)
}

func (k *crew) reset(s *Setup, t Tape) {
	k.setup, k.tape, k.now, k.load, k.locked, k.burning, k.queued, k.asked = s, t, 0, 0, 0, 0, 0, 0
	depth := s.Workers * s.Prefetch
	if cap(k.workers) < s.Workers {
		k.workers = make([]worker, s.Workers)
	}
	if cap(k.queues) < depth {
		k.queues = make([]int, depth)
	}
	k.workers, k.queues = k.workers[:s.Workers], k.queues[:depth]
	for i := range k.workers {
		k.workers[i] = worker{batch: -1}
	}
	k.order, k.work = grown(k.order, depth), 0
	k.arrives, k.until, k.ends = never(k.arrives, depth), never(k.until, s.Workers), never(k.ends, s.Workers)
}

// ask sends a worker the next index.
func (k *crew) ask(i int) {
	w := &k.workers[i]
	p := k.setup.Prefetch
	k.queues[i*p+(w.begun+w.length)%p] = k.asked
	w.length++
	k.asked++
	if w.batch < 0 {
		k.begin(i)
	}
}

// begin has an idle worker begin the oldest batch it was asked for.
func (k *crew) begin(i int) {
	w, s := &k.workers[i], k.setup
	if w.length == 0 {
		return
	}
	w.batch = k.queues[i*s.Prefetch+w.begun]
	w.begun = (w.begun + 1) % s.Prefetch
	w.length--
	x := &k.tape[w.batch%len(k.tape)]
	free := k.now
	waits := s.waits(x)
	if held := s.Exclusive; held > 0 && s.Wait > 0 {
		held *= waits / s.Wait
		free = max(free, k.locked)
		k.locked = free + held
	}
	w.cpu = s.burns(x)
	if k.until[i] = free + waits; k.until[i] <= k.now {
		k.burn(i)
	}
}

// burn puts a worker on the CPU, if it has something to compute there.
func (k *crew) burn(i int) {
	k.until[i] = math.Inf(1)
	cpu := k.workers[i].cpu
	if cpu <= 0 {
		k.finish(i)
		return
	}
	if k.burning == 0 {
		k.work = 0 // small numbers stay exact
	}
	k.burning++
	k.ends[i] = k.work + cpu
}

// finish ends a build and begins the next one.
func (k *crew) finish(i int) {
	w, s := &k.workers[i], k.setup
	arrives := max(k.now, w.fed) + s.Feed
	w.fed = arrives
	if s.OutOfOrder {
		k.order[i*s.Prefetch+w.ready] = arrives
		w.ready++
	} else {
		k.arrives[w.batch%len(k.arrives)] = arrives
	}
	w.batch = -1
	k.begin(i)
}

// share is how much of a CPU second a build gets in a second. The training process keeps what it needs, up to half of the cores: it
// may spin for its device as well as compute, so it is not held up.
func (k *crew) share() float64 {
	if k.burning == 0 {
		return 1
	}
	s := k.setup
	want := float64(k.burning) * max(s.Threads, 1)
	rate := 1.0
	if s.WorkerCores > 0 {
		rate = min(rate, s.WorkerCores/want)
	}
	if s.JobCores > 0 {
		rate = min(rate, max(s.JobCores-k.load, s.JobCores/2)/want)
	}
	return rate
}

// advance goes on to a time.
func (k *crew) advance(to float64) {
	for k.now < to {
		k.event(to)
	}
}

// event goes on to the next event, at most to the limit. Of several at one time, the others follow.
func (k *crew) event(limit float64) {
	waiting, until := first(k.until)
	at, who := limit, -1
	if until <= at {
		at, who = until, waiting
	}
	rate := 1.0
	if k.burning > 0 {
		rate = k.share()
		if i, end := first(k.ends); k.now+(end-k.work)/rate <= at {
			at, who = k.now+(end-k.work)/rate, i
		}
	}
	at = max(at, k.now)
	k.queued += float64(k.burning) * (at - k.now) * (1 - rate)
	k.work += rate * (at - k.now)
	k.now = at
	switch {
	case who < 0:
	case !math.IsInf(k.ends[who], 1):
		k.work, k.ends[who] = k.ends[who], math.Inf(1)
		k.burning--
		k.finish(who)
	default:
		k.burn(who)
	}
}

// first returns the least of all and its place.
func first(v []float64) (place int, least float64) {
	least = math.Inf(1)
	for i, x := range v {
		if x < least {
			place, least = i, x
		}
	}
	return place, least
}

// never returns n times that never come.
func never(v []float64, n int) []float64 {
	v = grown(v, n)
	for i := range v {
		v[i] = math.Inf(1)
	}
	return v
}

// await goes on until the batch that is delivered next was built, and returns whose it is and when it arrives.
func (k *crew) await(b int) (who int, arrives float64) {
	if !k.setup.OutOfOrder {
		slot := b % len(k.arrives)
		for math.IsInf(k.arrives[slot], 1) {
			k.event(math.Inf(1))
		}
		return b % k.setup.Workers, k.arrives[slot]
	}
	for {
		who, arrives = k.earliest()
		if arrives <= k.now {
			return who, arrives
		}
		k.event(arrives)
	}
}

// earliest returns the first arrival of all.
func (k *crew) earliest() (who int, arrives float64) {
	arrives = math.Inf(1)
	for i := range k.workers {
		if k.workers[i].ready > 0 && k.order[i*k.setup.Prefetch] < arrives {
			who, arrives = i, k.order[i*k.setup.Prefetch]
		}
	}
	return who, arrives
}

// deliver takes a batch over and asks its worker for another.
func (k *crew) deliver(b, who int) {
	if k.setup.OutOfOrder {
		w := &k.workers[who]
		queue := k.order[who*k.setup.Prefetch:][:w.ready]
		copy(queue, queue[1:])
		w.ready--
	} else {
		k.arrives[b%len(k.arrives)] = math.Inf(1)
	}
	k.ask(who)
}

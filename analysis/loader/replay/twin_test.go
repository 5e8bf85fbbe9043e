package replay

import (
	"math"
	"slices"
)

// twin is the slow, obviously correct counterpart of [Player]: it plays every setup event by event, with queues that are queues, and
// keeps every time it sees.
//
// The rules are those of torch/utils/data/dataloader.py (1.13 to 2.9): P·W indices are sent ahead, round-robin; a new one is sent
// when a batch has been taken over, to the next worker, with in_order=False to the next worker that has room; batches are
// delivered in order, or as they arrive.
type twin struct {
	Setup
	tape Tape

	now      float64
	sent     int
	tasks    []int   // of each worker: asked for and not taken over
	queue    [][]int // asked for and not begun
	builds   []*build
	lock     []*build // waiting for what is exclusive, first come first served
	arriving []arrival
	lastFed  []float64
	cycle    int // worker that is next in turn

	taking     bool // the training thread takes a batch over
	inNext     bool
	until      float64 // of what it does outside next() or taking over
	delivering int     // batch
	done       []delivery
	deviceEnds []float64
}

type build struct {
	batch, worker int
	exclusive     float64 // still to come
	wait, cpu     float64
	holds         bool
}

type arrival struct {
	batch, worker int
	at            float64
}

// delivery is one batch as the training thread saw it.
type delivery struct {
	batch               int
	enter, taken, leave float64
}

func (x *twin) row(batch int) Batch {
	if len(x.tape) == 0 {
		return Batch{1, 1, 1}
	}
	b := x.tape[batch%len(x.tape)]
	b.Wait -= float32(x.Even) * (b.Wait - 1)
	b.CPU -= float32(x.Even) * (b.CPU - 1)
	return b
}

func (x *twin) run(batches int) []delivery {
	x.Prefetch, x.Threads = max(x.Prefetch, 1), max(x.Threads, 1)
	x.tasks, x.queue = make([]int, x.Workers), make([][]int, x.Workers)
	x.builds, x.lastFed = make([]*build, x.Workers), make([]float64, x.Workers)
	for range x.Workers * x.Prefetch {
		x.send()
	}
	x.enter()
	for len(x.done) < batches {
		for len(x.done) < batches && x.act() {
		}
		if len(x.done) < batches {
			x.pass(x.next())
		}
	}
	return x.done
}

// send gives the next index to the next worker in turn.
func (x *twin) send() {
	for range x.Workers {
		i := x.cycle
		x.cycle = (x.cycle + 1) % x.Workers
		if !x.OutOfOrder || x.tasks[i] < x.Prefetch {
			x.queue[i] = append(x.queue[i], x.sent)
			x.tasks[i]++
			x.sent++
			return
		}
	}
}

// act does one thing that happens now; false if there is none.
func (x *twin) act() bool {
	for i := range x.builds {
		switch b := x.builds[i]; {
		case b == nil && len(x.queue[i]) > 0:
			x.start(i)
			return true
		case b != nil && b.exclusive <= 0 && b.holds:
			b.holds = false
			x.lock = x.lock[1:]
			if len(x.lock) > 0 {
				x.lock[0].holds = true
			}
			return true
		case b != nil && b.exclusive <= 0 && b.wait <= 0 && b.cpu <= 0:
			x.builds[i] = nil
			at := max(x.now, x.lastFed[i]) + x.Feed
			x.lastFed[i] = at
			x.arriving = append(x.arriving, arrival{b.batch, i, at})
			return true
		}
	}
	return x.train()
}

func (x *twin) start(i int) {
	row := x.row(x.queue[i][0])
	b := &build{batch: x.queue[i][0], worker: i, exclusive: x.Exclusive * float64(row.Wait),
		wait: (x.Wait - x.Exclusive) * float64(row.Wait), cpu: x.CPU * float64(row.CPU)}
	x.queue[i], x.builds[i] = x.queue[i][1:], b
	if b.exclusive > 0 {
		x.lock = append(x.lock, b)
		b.holds = len(x.lock) == 1
	}
}

// train is what the training thread does now.
func (x *twin) train() bool {
	switch {
	case x.taking && x.until <= x.now:
		x.taking = false
		x.takeOver()
	case !x.taking && !x.inNext && x.until <= x.now:
		x.enter()
	case x.inNext:
		i := x.deliverable()
		if i < 0 {
			return false
		}
		a := x.arriving[i]
		x.arriving = slices.Delete(x.arriving, i, i+1)
		x.delivering = a.batch
		x.tasks[a.worker]--
		x.inNext, x.taking, x.until = false, true, x.now+x.Take
	default:
		return false
	}
	return true
}

func (x *twin) enter() {
	x.inNext = true
	x.done = append(x.done, delivery{enter: x.now})
	if x.Workers == 0 {
		row := x.row(len(x.done) - 1)
		x.inNext, x.taking = false, true
		x.delivering = len(x.done) - 1
		x.until = x.now + x.Wait*float64(row.Wait) + x.CPU*float64(row.CPU) + x.Take
	}
}

// deliverable is the arrival that next() returns now, −1 if it waits.
func (x *twin) deliverable() int {
	best := -1
	for i, a := range x.arriving {
		if a.at > x.now || !x.OutOfOrder && a.batch != len(x.done)-1 {
			continue
		}
		if best < 0 || a.at < x.arriving[best].at || a.at == x.arriving[best].at && a.worker < x.arriving[best].worker {
			best = i
		}
	}
	return best
}

func (x *twin) takeOver() {
	d := &x.done[len(x.done)-1]
	d.batch, d.taken = x.delivering, x.now
	if x.Workers > 0 {
		x.send()
	}
	shape := float64(x.row(len(x.done) - 1).Outside)
	x.until = x.now + x.Outside*shape
	if x.Ahead > 0 {
		last := 0.0
		if n := len(x.deviceEnds); n > 0 {
			last = x.deviceEnds[n-1]
		}
		x.deviceEnds = append(x.deviceEnds, max(last, x.now)+x.Device*shape)
		if n := len(x.deviceEnds) - 1 - x.Ahead; n >= 0 {
			x.until = max(x.until, x.deviceEnds[n])
		}
	}
	d.leave = x.until
}

// busy is the cores that the training process takes.
func (x *twin) busy() float64 {
	if x.inNext || x.taking || x.Outside <= 0 {
		return 0
	}
	return math.Min(1, x.Main/x.Outside)
}

// rate is what a build on the CPU gets.
func (x *twin) rate() float64 {
	n := 0.0
	for _, b := range x.builds {
		if b != nil && b.exclusive <= 0 && b.wait <= 0 {
			n += x.Threads
		}
	}
	rate := 1.0
	if x.WorkerCores > 0 {
		rate = math.Min(rate, x.WorkerCores/n)
	}
	if x.JobCores > 0 {
		rate = math.Min(rate, math.Max(x.JobCores-x.busy(), x.JobCores/2)/n)
	}
	return rate
}

// next is how long nothing happens from now on.
func (x *twin) next() float64 {
	dt := math.Inf(1)
	soon := func(v float64) {
		if v > 0 {
			dt = math.Min(dt, v)
		}
	}
	if !x.inNext {
		soon(x.until - x.now)
	}
	for _, a := range x.arriving {
		soon(a.at - x.now)
	}
	for _, b := range x.builds {
		switch {
		case b == nil:
		case b.exclusive > 0:
			if b.holds {
				soon(b.exclusive)
			}
		case b.wait > 0:
			soon(b.wait)
		default:
			soon(b.cpu / x.rate())
		}
	}
	return dt
}

func (x *twin) pass(dt float64) {
	rate := x.rate()
	const none = 1e-12
	less := func(v *float64, by float64) {
		if *v -= by; *v < none {
			*v = 0
		}
	}
	for _, b := range x.builds {
		switch {
		case b == nil:
		case b.exclusive > 0:
			if b.holds {
				less(&b.exclusive, dt)
			}
		case b.wait > 0:
			less(&b.wait, dt)
		default:
			less(&b.cpu, rate*dt)
		}
	}
	x.now += dt
	if !x.inNext && x.until-x.now < none {
		x.until = x.now
	}
	for i := range x.arriving {
		if a := &x.arriving[i]; a.at > x.now && a.at-x.now < none {
			a.at = x.now
		}
	}
}

package ledger

import (
	"math"
	"slices"
)

// DefaultIdleAfter is how long a process may show no sign of life before its GPU counts as held idle.
const DefaultIdleAfter = 60e9

// Page is the account book of one GPU.
type Page struct {
	idleAfter int64
	begin     int64
	at        int64 // settled up to here
	lanes     []*lane
	windows   []Window // pending
	sorted    bool
	tested    bool
	test      int64  // the cached-data test began: from here on only what is kept is allocated
	kept      []Span // counted live blocks, ordered and disjoint from keeping on
	keeping   int
	totals    Totals
}

// NewPage opens the book of a GPU that is allocated from begin on. idleAfter in ns; 0 means DefaultIdleAfter.
func NewPage(begin, idleAfter int64) *Page {
	if idleAfter <= 0 {
		idleAfter = DefaultIdleAfter
	}
	return &Page{idleAfter: idleAfter, begin: begin, at: begin, sorted: true}
}

// Lane adds a process and returns its number.
func (p *Page) Lane() int {
	p.lanes = append(p.lanes, &lane{sorted: true})
	return len(p.lanes) - 1
}

// Add takes what a process did. Spans may come in any order and overlap; what begins before the settled time is cut.
func (p *Page) Add(lane int, s Span) {
	if s.End < s.Begin || s.State >= spanStates {
		p.totals.Late++
		return
	}
	if s.Begin < p.at {
		p.late()
		if s.End <= p.at {
			return
		}
		s.Begin = p.at
	}
	p.lanes[lane].add(s)
}

// late counts an entry that came too late, unless it was over before the GPU was allocated.
func (p *Page) late() {
	if p.at > p.begin {
		p.totals.Late++
	}
}

// AddWindow takes counters. Where windows overlap, the earlier one counts.
func (p *Page) AddWindow(w Window) {
	if w.End <= w.Begin {
		p.totals.Late++
		return
	}
	if w.Begin < p.at {
		p.late()
		if w.End <= p.at {
			return
		}
		w.Begin = p.at
	}
	if n := len(p.windows); n > 0 && w.compare(p.windows[n-1]) < 0 {
		p.sorted = false
	}
	p.windows = append(p.windows, w)
}

// Test says that the cached-data test began: from t on, only what Keep names is allocated time.
func (p *Page) Test(t int64) {
	if !p.tested || t < p.test {
		p.tested, p.test = true, t
	}
}

// Keep names a counted live block of the test. Blocks do not overlap.
func (p *Page) Keep(begin, end int64) {
	if begin >= end {
		return
	}
	p.kept = append(p.kept, Span{Begin: begin, End: end})
	for i := len(p.kept) - 1; i > 0 && p.kept[i].Begin < p.kept[i-1].Begin; i-- {
		p.kept[i], p.kept[i-1] = p.kept[i-1], p.kept[i]
	}
}

// Totals returns the balance of what has been settled.
func (p *Page) Totals() Totals { return p.totals }

// Settled returns the time up to which everything is booked.
func (p *Page) Settled() int64 { return p.at }

// CloseUpTo settles what can be settled up to t. The caller promises that everything that begins before t has been added:
// t is now minus the largest lag of a source. Windows are settled whole, open gaps wait for their end, and during a
// cached-data test nothing is settled past the last kept block; so the balance does not depend on when, or how often, it is called.
func (p *Page) CloseUpTo(t int64) {
	p.sort()
	limit := t
	for _, l := range p.lanes {
		limit = min(limit, l.told(t, p.idleAfter))
	}
	if p.tested && p.test < limit {
		settled := p.test
		if n := len(p.kept); n > 0 {
			settled = max(settled, p.kept[n-1].End)
		}
		limit = min(limit, settled)
	}
	for i := len(p.windows) - 1; i >= 0; i-- { // from the last, for they may overlap
		if w := &p.windows[i]; w.Begin < limit && limit < w.End {
			limit = w.Begin
		}
	}
	p.settle(limit, t)
}

// Close settles everything up to end, which is the end of the allocation.
func (p *Page) Close(end int64) {
	p.sort()
	p.settle(end, end)
}

func (p *Page) sort() {
	for _, l := range p.lanes {
		l.sort()
	}
	if !p.sorted {
		slices.SortFunc(p.windows, Window.compare)
		p.sorted = true
	}
}

// settle books from the settled time up to limit, one piece at a time: a piece is a stretch over which nothing changes.
//
//	counters    |    window    |              |    window    |
//	process   ..|  busy  |wait |  wait  |busy | busy |
//	allocated ......................|  test   |
//	pieces      |        |     |    |   |     |      |
func (p *Page) settle(limit, closing int64) {
	used := 0
	var in [states]int64
	for p.at < limit {
		for used < len(p.windows) && p.windows[used].End <= p.at {
			used++
		}
		var w *Window
		next := limit
		if used < len(p.windows) {
			if w = &p.windows[used]; w.Begin > p.at {
				next, w = min(next, w.Begin), nil
			} else {
				next = min(next, w.End)
			}
		}
		edge := next // of the window, or of the gap between two
		for p.at < edge {
			state, until := p.state(closing)
			allocated, alike := p.allocated()
			piece := min(edge, until, alike)
			if allocated {
				in[state] += piece - p.at
			}
			p.at = piece
		}
		p.book(w, &in)
		in = [states]int64{}
	}
	p.windows = append(p.windows[:0], p.windows[used:]...)
	for _, l := range p.lanes {
		l.forget()
	}
}

// state is what the busiest process did at the settled time, and how long nothing changes.
func (p *Page) state(closing int64) (State, int64) {
	if len(p.lanes) == 0 {
		return Idle, closing
	}
	state, until := p.lanes[0].at(p.at, closing, p.idleAfter)
	for _, l := range p.lanes[1:] {
		s, u := l.at(p.at, closing, p.idleAfter)
		state, until = min(state, s), min(until, u)
	}
	return state, until
}

// allocated reports whether the settled time belongs to the job, and how long that stays so.
func (p *Page) allocated() (yes bool, until int64) {
	if !p.tested {
		return true, math.MaxInt64
	}
	if p.at < p.test {
		return true, p.test
	}
	for ; p.keeping < len(p.kept); p.keeping++ {
		switch k := p.kept[p.keeping]; {
		case p.at < k.Begin:
			return false, k.Begin
		case p.at < k.End:
			return true, k.End
		}
	}
	return false, math.MaxInt64
}

// book books the states of one window, or of a gap between windows (w is nil).
//
// A counter tells how long kernels were resident in the whole window, not when. That part is taken from the time in which the
// process was busy, the only time the job meant the GPU to work; what is left of that time is the host's.
func (p *Page) book(w *Window, in *[states]int64) {
	t := &p.totals
	allocated := int64(0)
	for _, n := range in {
		allocated += n
	}
	if allocated == 0 {
		return
	}
	t.Allocated += allocated
	trusted := w != nil && w.trusted()
	if trusted {
		t.Covered += allocated
	}
	// A process that is not seen holding the GPU while kernels run or its device clock ticks lives in another PID namespace.
	if w != nil && w.HeldKnown && !w.Held && !(w.Resident > 0) && in[Exposed] == 0 {
		t.NS[NotHeld] += allocated
		return
	}
	t.NS[Startup] += in[Starts]
	t.NS[EpochStart] += in[EpochOpens]
	t.NS[ExposedWait] += in[Exposed]
	t.NS[Validation] += in[Validates]
	t.NS[Checkpoint] += in[Saves]
	t.NS[Unattributed] += in[Wait]
	t.WaitUpperBound += in[Wait]
	busy, idle := in[Busy], in[Idle]
	if !trusted {
		t.NS[Unattributed] += busy + idle
		return
	}
	resident := share(w.Resident, allocated)
	compute := min(busy, resident)
	idling := min(idle, resident-compute) // no sign of life, yet kernels run: it computes
	t.NS[Compute] += compute + idling
	copied := min(busy-compute, share(w.Copy, allocated)) // at most: copies may run beside kernels
	t.NS[Copy] += copied
	t.NS[Host] += busy - compute - copied
	if w.HeldKnown && w.Held {
		t.NS[IdleHeld] += idle - idling
	} else {
		t.NS[Unattributed] += idle - idling
	}
}

// share is a ratio of a time; a ratio that is not known is none.
func share(ratio float32, of int64) int64 {
	if !(ratio > 0) {
		return 0
	}
	return min(of, int64(math.Round(float64(ratio)*float64(of))))
}

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
	bound     int // spans of a lane that are not settled; 0 = none
	time      allocation
	totals    Totals
	view      *allocation // some of the time, for a balance of its own
	viewed    Totals
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
	p.lanes = append(p.lanes, &lane{sorted: true, hold: math.MaxInt64})
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
	if l := p.lanes[lane]; p.bound == 0 || len(l.spans)-l.next < p.bound {
		l.add(s)
		return
	}
	p.totals.Late++
}

// Hold says that the story of a process is certain only up to t, whatever CloseUpTo is told; math.MaxInt64 lifts it.
func (p *Page) Hold(lane int, t int64) { p.lanes[lane].hold = t }

// AddWait takes a wait for data, as Waited parts it.
func (p *Page) AddWait(lane int, enter, exit, idle int64) {
	first, second := waited(enter, exit, idle)
	p.Add(lane, first)
	if second.End > second.Begin {
		p.Add(lane, second)
	}
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
func (p *Page) Test(t int64) { p.time.only(t) }

// Keep names a counted live block of the test. Blocks do not overlap.
func (p *Page) Keep(begin, end int64) { p.time.keep(begin, end) }

// View asks for a second balance, of the given time only, which may or may not be allocated. Call it before anything is settled.
func (p *Page) View(spans []Span) {
	p.view = &allocation{limited: true, from: math.MinInt64}
	for _, s := range spans {
		p.view.keep(s.Begin, s.End)
	}
}

// Totals returns the balance of what has been settled.
func (p *Page) Totals() Totals { return p.totals }

// Viewed returns the balance of the view.
func (p *Page) Viewed() Totals { return p.viewed }

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
	limit = min(limit, p.time.told())
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
	var in, seen [states]int64
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
			allocated, alike := p.time.holds(p.at)
			piece := min(edge, until, alike)
			if p.view != nil {
				viewed, alike := p.view.holds(p.at)
				piece = min(piece, alike)
				if viewed {
					seen[state] += piece - p.at
				}
			}
			if allocated {
				in[state] += piece - p.at
			}
			p.at = piece
		}
		p.totals.book(w, &in)
		in = [states]int64{}
		if p.view != nil {
			p.viewed.book(w, &seen)
			seen = [states]int64{}
		}
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

package analysis

import (
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// book books the allocated time of the GPU, and beside it the steady steps of its rank alone: their balance is the anatomy of a
// step.
func (d *device) book(idleAfter int64) {
	if d.Node.Begin == load.Unknown {
		return
	}
	page := ledger.NewPage(d.Node.Begin, idleAfter)
	for _, k := range d.ranks {
		if k.spare(page) {
			break // all ranks switch on the same step
		}
	}
	alone := len(d.ranks) == 1
	if alone {
		page.View(d.ranks[0].steady.entries())
	}
	fold(page, d.ranks, d.Windows, d.Node.End, !d.shared())
	d.books = page.Totals()
	if d.unfed() {
		d.books = d.books.Unwatched()
	}
	if alone {
		d.ranks[0].close(page)
	}
}

// unfed reports a device of which some rank's fetches were not seen.
func (d *device) unfed() bool { return slices.ContainsFunc(d.ranks, (*rank).unfed) }

// close takes over the balance of the rank's steady steps.
func (k *rank) close(page *ledger.Page) {
	k.steady.books = page.Viewed()
	if k.unfed() {
		k.steady.books = k.steady.books.Unwatched()
	}
}

// spare takes the cached-data test out of the allocation, its counted live blocks apart; false if the rank ran none.
func (k *rank) spare(page *ledger.Page) bool {
	if k.TestBegan == load.Unknown {
		return false
	}
	page.Test(k.TestBegan)
	for _, s := range k.live {
		if s.begin >= k.TestBegan {
			page.Keep(s.begin, s.end)
		}
	}
	return true
}

// chunk is how many fetches of a rank are booked before the page settles: their spans fit a first-level cache. It changes no number.
const chunk = 1 << 8

// fold books the whole story of the ranks of one GPU and closes the page. Where the GPU is not theirs alone its counters are of all who
// share it: what they show is nobody's computing.
func fold(page *ledger.Page, ranks []*rank, windows []load.Window, end int64, alone bool) {
	tellers := make([]*teller, len(ranks))
	for i, k := range ranks {
		tellers[i] = &teller{rank: k, lane: page.Lane(), page: page}
	}
	next := 0
	upTo := func(t int64) {
		for _, s := range tellers {
			s.tell(t)
		}
		for ; next < len(windows) && windows[next].Begin < t; next++ {
			w := entry(&windows[next])
			if !alone {
				w.Resident, w.Copy = unread, unread
			}
			page.AddWindow(w)
		}
	}
	if len(ranks) > 0 {
		fetches := ranks[0].Fetches
		for i := chunk; i < len(fetches); i += chunk {
			upTo(fetches[i].Enter)
			page.CloseUpTo(fetches[i].Enter)
		}
	}
	upTo(end + 1)
	page.Close(end)
}

var unread = float32(math.NaN())

func entry(w *load.Window) ledger.Window {
	return ledger.Window{Begin: w.Begin, End: w.End, Resident: w.Resident, Copy: w.Copy,
		Untrusted: w.Untrusted, HeldKnown: w.Known, Held: w.Holds}
}

// teller tells a page what a rank did, in order of time: a page that is told in order need not sort.
type teller struct {
	rank                        *rank
	lane                        int
	page                        *ledger.Page
	fetch, step, iterator, mark int
}

// tell adds everything that began before t.
func (s *teller) tell(t int64) {
	k := s.rank
	for {
		next, kind := t, 0
		if s.fetch < len(k.Fetches) && k.Fetches[s.fetch].Enter < next {
			next, kind = k.Fetches[s.fetch].Enter, 1
		}
		if s.step < len(k.Steps) && k.Steps[s.step].End < t && k.Steps[s.step].End <= next { // before a fetch that begins with its end
			next, kind = k.Steps[s.step].End, 2
		}
		if s.iterator < len(k.Iterators) && k.Iterators[s.iterator].Begin < next {
			next, kind = k.Iterators[s.iterator].Begin, 3
		}
		if s.mark < len(k.Marks) && k.Marks[s.mark].Begin < next {
			kind = 4
		}
		switch kind {
		case 1:
			s.tellFetch(&k.Fetches[s.fetch])
			s.fetch++
		case 2:
			s.page.Add(s.lane, ledger.Span{Begin: next, End: next, State: ledger.Busy})
			s.step++
		case 3:
			s.tellIterator(&k.Iterators[s.iterator])
			s.iterator++
		case 4:
			s.tellMark(&k.Marks[s.mark])
			s.mark++
		default:
			return
		}
	}
}

func (s *teller) tellIterator(it *load.Iterator) {
	state := ledger.EpochOpens
	if s.rank.validated[loaderEpoch{it.Loader, it.Epoch}] {
		state = ledger.Validates
	}
	s.page.Add(s.lane, ledger.Span{Begin: it.Begin, End: it.End, State: state})
}

func (s *teller) tellMark(m *load.Mark) {
	switch m.Code {
	case recording.MarkValidation:
		s.page.Add(s.lane, ledger.Span{Begin: m.Begin, End: m.End, State: ledger.Validates})
	case recording.MarkCheckpoint:
		s.page.Add(s.lane, ledger.Span{Begin: m.Begin, End: m.End, State: ledger.Saves})
	}
}

func (s *teller) tellFetch(f *load.Fetch) {
	k := s.rank
	switch {
	case f.Upstream():
	case k.validates(f):
		s.page.Add(s.lane, ledger.Span{Begin: f.Enter, End: f.Exit, State: ledger.Validates})
	case f.Is(recording.FetchFirst):
		s.page.Add(s.lane, ledger.Span{Begin: f.Enter, End: f.Exit, State: ledger.EpochOpens})
	default:
		s.page.AddWait(s.lane, f.Enter, f.Exit, f.Idle)
	}
}

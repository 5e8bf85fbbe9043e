package analysis

import (
	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// ledger books the allocated time of every GPU.
func (r *run) ledger() {
	for _, d := range r.devices {
		if d.Node.Begin == load.Unknown {
			continue
		}
		page := ledger.NewPage(d.Node.Begin, int64(r.options.IdleAfter))
		for _, k := range d.ranks {
			if k.spare(page) {
				break // all ranks switch on the same step
			}
		}
		d.books = fold(page, d.ranks, d.Windows, d.Node.End)
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

// chunk is how many fetches of a rank are booked before the page settles: it bounds memory, and changes no number.
const chunk = 1 << 15

// fold books the whole story of the ranks of one GPU and closes the page.
func fold(page *ledger.Page, ranks []*rank, windows []load.Window, end int64) ledger.Totals {
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
			page.AddWindow(entry(&windows[next]))
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
	return page.Totals()
}

func entry(w *load.Window) ledger.Window {
	return ledger.Window{Begin: w.Begin, End: w.End, Resident: w.Resident, Copy: w.Copy,
		Untrusted: w.Untrusted, HeldKnown: w.Known, Held: w.Holds}
}

// teller tells a page what a rank did, in order of time.
type teller struct {
	rank                        *rank
	lane                        int
	page                        *ledger.Page
	fetch, step, iterator, mark int
}

// tell adds everything that began before t.
func (s *teller) tell(t int64) {
	k := s.rank
	for s.iterator < len(k.Iterators) && k.Iterators[s.iterator].Begin < t {
		it := &k.Iterators[s.iterator]
		state := ledger.EpochOpens
		if !k.trains[it.Loader] {
			state = ledger.Validates
		}
		s.page.Add(s.lane, ledger.Span{Begin: it.Begin, End: it.End, State: state})
		s.iterator++
	}
	for s.mark < len(k.Marks) && k.Marks[s.mark].Begin < t {
		m := &k.Marks[s.mark]
		switch m.Code {
		case recording.MarkValidation:
			s.page.Add(s.lane, ledger.Span{Begin: m.Begin, End: m.End, State: ledger.Validates})
		case recording.MarkCheckpoint:
			s.page.Add(s.lane, ledger.Span{Begin: m.Begin, End: m.End, State: ledger.Saves})
		}
		s.mark++
	}
	for {
		fetch := s.fetch < len(k.Fetches) && k.Fetches[s.fetch].Enter < t
		step := s.step < len(k.Steps) && k.Steps[s.step].End < t
		switch {
		case step && (!fetch || k.Steps[s.step].End <= k.Fetches[s.fetch].Enter):
			end := k.Steps[s.step].End
			s.page.Add(s.lane, ledger.Span{Begin: end, End: end, State: ledger.Busy})
			s.step++
		case fetch:
			s.told(&k.Fetches[s.fetch])
			s.fetch++
		default:
			return
		}
	}
}

// told adds one fetch.
func (s *teller) told(f *load.Fetch) {
	k := s.rank
	switch {
	case f.Upstream():
	case k.validates(f):
		s.page.Add(s.lane, ledger.Span{Begin: f.Enter, End: f.Exit, State: ledger.Validates})
	case f.Is(recording.FetchFirst) && k.training(f):
		s.page.Add(s.lane, ledger.Span{Begin: f.Enter, End: f.Exit, State: ledger.EpochOpens})
	default:
		for _, w := range ledger.Waited(f.Enter, f.Exit, f.Idle) {
			s.page.Add(s.lane, w)
		}
	}
}

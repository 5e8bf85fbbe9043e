package ledger

import (
	"math"
	"slices"
)

// story is everything a page is told.
type story struct {
	begin, end int64
	idleAfter  int64
	lanes      [][]Span
	windows    []Window
	tested     bool
	test       int64
	kept       []Span
}

// twin books the story one nanosecond at a time, looking at every entry each time: slow, and obviously right.
func (s story) twin() Totals {
	windows := slices.Clone(s.windows)
	for i := range windows {
		windows[i].Begin = max(windows[i].Begin, s.begin)
	}
	slices.SortFunc(windows, Window.compare)
	var t Totals
	counts := map[int]*[states]int64{} // by window; −1 is no window
	for at := s.begin; at < s.end; at++ {
		if !s.allocatedAt(at) {
			continue
		}
		w := slices.IndexFunc(windows, func(w Window) bool { return w.Begin <= at && at < w.End })
		if counts[w] == nil {
			counts[w] = new([states]int64)
		}
		counts[w][s.stateAt(at)]++
	}
	for w, in := range counts {
		var window *Window
		if w >= 0 {
			window = &windows[w]
		}
		t = t.Add(slowBook(window, *in))
	}
	return t
}

func (s story) allocatedAt(at int64) bool {
	if !s.tested || at < s.test {
		return true
	}
	return slices.ContainsFunc(s.kept, func(k Span) bool { return k.Begin <= at && at < k.End })
}

// stateAt is the state of the busiest lane.
func (s story) stateAt(at int64) State {
	if len(s.lanes) == 0 {
		return Idle
	}
	busiest := Starts
	for _, lane := range s.lanes {
		busiest = min(busiest, s.laneAt(lane, at))
	}
	return busiest
}

func (s story) laneAt(lane []Span, at int64) State {
	covering := -1
	prev, prevState, any, begun := int64(math.MinInt64), Busy, false, false
	next, validates := s.end, false
	for _, x := range lane {
		if x.Begin < s.begin && x.End <= s.begin {
			continue // over before the allocation began
		}
		x.Begin = max(x.Begin, s.begin)
		if x.Begin <= at && at < x.End {
			covering = max(covering, int(x.State))
		}
		if x.Begin <= at {
			if !any || x.End > prev || x.End == prev && x.State > prevState {
				prev, prevState = x.End, x.State
			}
			any = true
			begun = begun || x.State <= Exposed
		} else if x.Begin < next {
			next, validates = x.Begin, x.State == Validates
		} else if x.Begin == next && next < s.end {
			validates = validates || x.State == Validates
		}
	}
	switch {
	case covering >= 0:
		return State(covering)
	case !any:
		return Starts
	case next-prev > s.idleAfter && !begun:
		return Starts
	case next-prev > s.idleAfter:
		return Idle
	case prevState == Validates && validates:
		return Validates
	}
	return Busy
}

// slowBook follows the words of the accounts, one after the other.
func slowBook(w *Window, in [states]int64) (t Totals) {
	for _, n := range in {
		t.Allocated += n
	}
	trusted := w != nil && !w.Untrusted && w.Resident >= 0 && w.Resident <= 1
	if trusted {
		t.Covered = t.Allocated
	}
	residentShare, copyShare := 0.0, 0.0
	if w != nil && w.Resident > 0 {
		residentShare = float64(w.Resident)
	}
	if w != nil && w.Copy > 0 {
		copyShare = min(1, float64(w.Copy))
	}
	if w != nil && w.HeldKnown && !w.Held && residentShare == 0 && in[Exposed] == 0 {
		t.NS[NotHeld] = t.Allocated
		return t
	}
	t.NS[Startup], t.NS[EpochStart], t.NS[ExposedWait] = in[Starts], in[EpochOpens], in[Exposed]
	t.NS[Validation], t.NS[Checkpoint], t.WaitUpperBound = in[Validates], in[Saves], in[Wait]
	t.NS[Unattributed] = in[Wait]
	rest := map[State]int64{Busy: in[Busy], Idle: in[Idle]}
	if !trusted {
		t.NS[Unattributed] += rest[Busy] + rest[Idle]
		return t
	}
	take := func(n int64, from ...State) (taken int64) {
		for _, s := range from {
			for n > 0 && rest[s] > 0 {
				n--
				rest[s]--
				taken++
			}
		}
		return taken
	}
	t.NS[Compute] = take(int64(math.Round(residentShare*float64(t.Allocated))), Busy, Idle)
	t.NS[Copy] = take(int64(math.Round(copyShare*float64(t.Allocated))), Busy)
	t.NS[Host] = rest[Busy]
	if w.HeldKnown && w.Held {
		t.NS[IdleHeld] = rest[Idle]
	} else {
		t.NS[Unattributed] += rest[Idle]
	}
	return t
}

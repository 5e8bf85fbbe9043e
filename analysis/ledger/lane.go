package ledger

import "slices"

// lane is the story of one process on a page.
//
//	spans    [iter][first]     [wait]  s [wait]  s                     [wait]
//	gaps   Starts         Busy       Busy      Busy|    Idle (> limit)  |
//
// (s is the instant of an optimizer step.) What a gap means depends on both its ends, so a gap is settled only when the next
// span is known, or when it has become too long to be anything but Idle.
type lane struct {
	spans  []Span // pending, sorted from next on when sorted is true
	next   int    // first that has not been consumed
	sorted bool

	until [spanStates]int64 // per state: end of what was consumed
	end   int64             // the latest of them
	last  State             // that ended then
	any   bool              // something was consumed
	begun bool              // some training was
	hold  int64             // the story from here on waits for something else
}

func (l *lane) add(s Span) {
	if n := len(l.spans); n > l.next && s.Begin < l.spans[n-1].Begin {
		l.sorted = false
	} else if n == l.next {
		l.sorted = true
	}
	l.spans = append(l.spans, s)
}

func (l *lane) sort() {
	if !l.sorted {
		slices.SortFunc(l.spans[l.next:], Span.compare)
		l.sorted = true
	}
}

// forget releases consumed spans.
func (l *lane) forget() {
	if l.next > 1024 || l.next == len(l.spans) {
		l.spans = append(l.spans[:0], l.spans[l.next:]...)
		l.next = 0
	}
}

// told returns how far the story before t is certain: to t, or to where a gap begins that is still open.
func (l *lane) told(t, idleAfter int64) int64 {
	t = min(t, l.hold)
	end, any := l.end, l.any
	for _, s := range l.spans[l.next:] {
		if s.Begin >= t {
			break // sorted
		}
		end, any = max(end, s.End), true
	}
	if !any || end >= t || t-end > idleAfter {
		return t
	}
	return end
}

// at returns the state at time c and how long it certainly lasts; c never decreases. closing is the end of what is known.
func (l *lane) at(c, closing, idleAfter int64) (State, int64) {
	for l.next < len(l.spans) && l.spans[l.next].Begin <= c {
		l.consume(&l.spans[l.next])
		l.next++
	}
	following, validates := closing, false
	if l.next < len(l.spans) && l.spans[l.next].Begin < closing {
		following = l.spans[l.next].Begin
	}
	if l.end > c { // else nothing covers c
		for s := int(spanStates) - 1; s >= 0; s-- {
			if l.until[s] > c {
				return State(s), min(l.until[s], following)
			}
		}
	}
	for i := l.next; i < len(l.spans) && l.spans[i].Begin == following; i++ {
		validates = validates || l.spans[i].State == Validates
	}
	return l.gap(following, validates, idleAfter), following
}

func (l *lane) consume(s *Span) {
	l.until[s.State] = max(l.until[s.State], s.End)
	if !l.any || s.End > l.end || s.End == l.end && s.State > l.last {
		l.end, l.last = s.End, s.State
	}
	l.any = true
	l.begun = l.begun || s.State <= Exposed
}

// gap says what a stretch without spans means. It ends at following; validates tells whether a validation span begins there.
func (l *lane) gap(following int64, validates bool, idleAfter int64) State {
	switch {
	case !l.any:
		return Starts
	case following-l.end > idleAfter && !l.begun:
		return Starts // the first batch is there, the first step takes minutes: compilation
	case following-l.end > idleAfter:
		return Idle
	case l.last == Validates && validates:
		return Validates // the forward pass between two fetches of a validation loop
	}
	return Busy
}

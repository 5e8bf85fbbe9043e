package replay

import "math"

// agenda is what workers are busy with, the one that is due first at its head. Few are on it, and most that come are due last or
// nearly so: a sorted row beats a heap there, and looking for the least of all.
type agenda struct {
	next float64 // when the first is due; +Inf if nothing is
	due  []due   // from head on, in order; there is room for twice as many as there are workers
	head int
}

type due struct {
	at     float64
	worker int
}

// after says whether one is due after the other: of two at one time, the one of the later worker is.
func (d due) after(e due) bool { return d.at > e.at || d.at == e.at && d.worker > e.worker }

func (a *agenda) reset(workers int) {
	if cap(a.due) < 2*workers {
		a.due = make([]due, 0, 2*workers)
	}
	a.next, a.due, a.head = math.Inf(1), a.due[:0], 0
}

func (a *agenda) len() int { return len(a.due) - a.head }

func (a *agenda) add(d due) {
	if len(a.due) == cap(a.due) {
		a.due, a.head = a.due[:copy(a.due, a.due[a.head:])], 0
	}
	all := append(a.due, d)
	i := len(all) - 1
	for ; i > a.head && all[i-1].after(d); i-- {
		all[i] = all[i-1]
	}
	all[i] = d
	a.due, a.next = all, all[a.head].at
}

// take takes the first off.
func (a *agenda) take() (worker int) {
	worker = a.due[a.head].worker
	if a.head++; a.head == len(a.due) {
		a.next, a.due, a.head = math.Inf(1), a.due[:0], 0
		return worker
	}
	a.next = a.due[a.head].at
	return worker
}

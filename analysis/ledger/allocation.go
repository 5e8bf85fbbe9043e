package ledger

import "math"

// allocation is the time that is booked: all of it, or from some moment on only what is kept.
//
//	limited      ............|
//	kept                        [====]      [====]
//	booked       ============   ======      ======
type allocation struct {
	limited bool
	from    int64
	kept    []Span // ordered and disjoint
	cursor  int    // those before it are over
}

func (a *allocation) only(from int64) {
	if !a.limited || from < a.from {
		a.limited, a.from = true, from
	}
}

func (a *allocation) keep(begin, end int64) {
	if begin >= end {
		return
	}
	a.kept = append(a.kept, Span{Begin: begin, End: end})
	for i := len(a.kept) - 1; i > 0 && a.kept[i].Begin < a.kept[i-1].Begin; i-- {
		a.kept[i], a.kept[i-1] = a.kept[i-1], a.kept[i]
	}
}

// holds reports whether t is booked, and how long that stays so; t never decreases.
func (a *allocation) holds(t int64) (yes bool, until int64) {
	if !a.limited {
		return true, math.MaxInt64
	}
	if t < a.from {
		return true, a.from
	}
	for ; a.cursor < len(a.kept); a.cursor++ {
		switch k := &a.kept[a.cursor]; {
		case t < k.Begin:
			return false, k.Begin
		case t < k.End:
			return true, k.End
		}
	}
	return false, math.MaxInt64
}

// told returns how far it is certain: blocks are named when they have ended.
func (a *allocation) told() int64 {
	switch n := len(a.kept); {
	case !a.limited:
		return math.MaxInt64
	case n == 0:
		return a.from
	default:
		return max(a.from, a.kept[n-1].End)
	}
}

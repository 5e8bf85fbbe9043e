package analysis

import (
	"cmp"
	"slices"
)

// span is a stretch of a node's monotonic clock, in ns.
type span struct{ begin, end int64 }

// spans are ordered and disjoint.
type spans []span

// holds reports whether t lies in one of them.
func (s spans) holds(t int64) bool {
	i := s.after(t)
	return i < len(s) && s[i].begin <= t
}

// after returns the index of the first that ends after t.
func (s spans) after(t int64) int {
	lo, hi := 0, len(s)
	for lo < hi {
		if mid := (lo + hi) / 2; s[mid].end > t {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// add appends a stretch that begins no earlier than the last one ended; neighbours become one.
func (s spans) add(begin, end int64) spans {
	if end <= begin {
		return s
	}
	if n := len(s); n > 0 && begin <= s[n-1].end {
		s[n-1].end = max(s[n-1].end, end)
		return s
	}
	return append(s, span{begin, end})
}

// overlap returns how much of a stretch lies in them.
func (s spans) overlap(begin, end int64) (ns int64) {
	for i := s.after(begin); i < len(s) && s[i].begin < end; i++ {
		ns += min(end, s[i].end) - max(begin, s[i].begin)
	}
	return ns
}

// union orders stretches and makes one of those that touch.
func union(all []span) (s spans) {
	if less := func(a, b span) int { return cmp.Compare(a.begin, b.begin) }; !slices.IsSortedFunc(all, less) {
		slices.SortFunc(all, less)
	}
	for _, x := range all {
		if n := len(s); n > 0 && x.begin <= s[n-1].end {
			s[n-1].end = max(s[n-1].end, x.end)
		} else if x.end > x.begin {
			s = append(s, x)
		}
	}
	return s
}

// minus returns what of s lies outside o.
func (s spans) minus(o spans) (rest spans) {
	for _, x := range s {
		begin := x.begin
		for i := o.after(begin); i < len(o) && o[i].begin < x.end; i++ {
			rest = rest.add(begin, o[i].begin)
			begin = max(begin, o[i].end)
		}
		rest = rest.add(begin, x.end)
	}
	return rest
}

// within returns how much of s lies in o.
func (s spans) within(o spans) (ns int64) {
	for _, x := range s {
		ns += o.overlap(x.begin, x.end)
	}
	return ns
}

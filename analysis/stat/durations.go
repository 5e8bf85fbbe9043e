package stat

import (
	"math"
	"slices"
)

// Durations are many lengths of time of which quantiles are asked. A day has millions of them, and nearly all are below four
// seconds, so each takes four bytes; none is rounded. The zero Durations are none.
type Durations struct {
	n      int
	pieces [][]uint32 // they are never copied, only the last one grows
	long   []int64    // those that do not fit in 32 bits
}

const piece = 1 << 14

// Add takes one duration in ns, which is not negative.
func (d *Durations) Add(ns int64) {
	d.n++
	if ns >= math.MaxUint32 {
		d.long = append(d.long, ns)
		return
	}
	last := len(d.pieces) - 1
	if last < 0 || len(d.pieces[last]) == piece {
		var next []uint32 // the first one grows: most holders keep few
		if last >= 0 {
			next = make([]uint32, 0, piece)
		}
		d.pieces = append(d.pieces, next)
		last++
	}
	d.pieces[last] = append(d.pieces[last], uint32(ns))
}

// Join takes all that the others hold. They share their memory from then on: nothing may be added to the others.
func (d *Durations) Join(o *Durations) {
	d.n += o.n
	for _, p := range o.pieces {
		d.pieces = append(d.pieces, p[:len(p):len(p)])
	}
	d.long = append(d.long, o.long...)
}

// Quantile returns the q-quantile (0–1): the smallest value with at least q of all values at or below it. ok is false without
// any.
func (d *Durations) Quantile(q float64) (ns int64, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	k := min(max(int(q*float64(d.n)+0.999999)-1, 0), d.n-1)
	if short := d.n - len(d.long); k >= short {
		long := slices.Sorted(slices.Values(d.long))
		return long[k-short], true
	}
	counts := make([]int32, 1<<16) // of the upper half of every value, then of the lower one: no copy, no sort
	for _, p := range d.pieces {
		for _, v := range p {
			counts[v>>16]++
		}
	}
	upper, k := atRank(counts, k)
	clear(counts)
	for _, p := range d.pieces {
		for _, v := range p {
			if v>>16 == upper {
				counts[v&0xffff]++
			}
		}
	}
	lower, _ := atRank(counts, k)
	return int64(upper<<16 | lower), true
}

// atRank returns the value that stands at rank k, from 0, of all that were counted, and its rank among its equals.
func atRank(counts []int32, k int) (value uint32, rest int) {
	for v, n := range counts {
		if k < int(n) {
			return uint32(v), k
		}
		k -= int(n)
	}
	return math.MaxUint16, 0
}

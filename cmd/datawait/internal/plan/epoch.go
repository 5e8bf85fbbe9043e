package plan

import "math"

// epoch is where epochs end, in steps of the training loader. A block must not contain an end: the iterator is made
// anew there and the queue is filled again.
//
//	step  ───┤ filling │        room        │├ filling │        room        │├──
//	         └ end of the epoch before       └ end     ...
type epoch struct {
	known   bool
	end     uint64 // step at which the current epoch ends
	length  uint64 // steps of an epoch
	filling uint64 // steps after a start that do not count
}

const margin = 1 // steps kept free before an end: steps and fetches are counted at different moments

// epoch returns the ends of epochs; of several ranks, whose epochs are equally long, the furthest counts.
func (p *Planner) epoch(v View, e paces) epoch {
	r := furthest(v)
	if r.EpochLength == 0 || r.EpochLength > math.MaxInt32 {
		return epoch{}
	}
	per := max(e.fetches, 1)
	remaining := uint64(float64(r.EpochLength-min(r.EpochIndex, r.EpochLength)) / per)
	return epoch{
		known:   true,
		end:     r.Steps + remaining,
		length:  uint64(float64(r.EpochLength) / per),
		filling: uint64(math.Ceil(float64(2*e.workers)/per)) + 2,
	}
}

// holds reports whether an epoch is long enough for n steps.
func (e epoch) holds(n uint64) bool { return !e.known || e.length >= e.filling+n+margin }

// room returns the first step at or after `first` from which n steps lie inside one epoch; ok is false if no epoch
// is long enough.
func (e epoch) room(first, n uint64) (at uint64, ok bool) {
	if !e.known {
		return first, true
	}
	if first+n+margin <= e.end {
		return first, true
	}
	if !e.holds(n) {
		return first, false
	}
	for end := e.end; ; end += e.length {
		if at := max(first, end+e.filling); at+n+margin <= end+e.length {
			return at, true
		}
	}
}

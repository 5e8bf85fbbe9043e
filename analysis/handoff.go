package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
)

// sent finds when the batch of a fetch was handed over by its worker. It is a table per loader and epoch, indexed by batch:
// a map of seven million batches would cost more than everything else together.
type sentTable struct {
	epochs map[loaderEpoch]*sentEpoch
	last   *sentEpoch
	key    loaderEpoch
}

type loaderEpoch struct {
	loader uint16
	epoch  uint32
}

type sentEpoch struct {
	low, high uint32 // batches seen
	n         int
	times     []int64 // by batch − low; load.Unknown where none
}

// sent indexes the batches that worker processes built for training. A batch built by the training thread itself is not handed over.
func (k *rank) sent() *sentTable {
	t := &sentTable{epochs: map[loaderEpoch]*sentEpoch{}}
	k.runs(t, func(e *sentEpoch, run []load.Batch) {
		if e.n == 0 {
			e.low, e.high = run[0].Index, run[0].Index
		}
		for i := range run {
			e.low, e.high = min(e.low, run[i].Index), max(e.high, run[i].Index)
		}
		e.n += len(run)
	})
	total := int64(0)
	for key, e := range t.epochs {
		size := int64(e.high) - int64(e.low) + 1
		if size > 8*int64(e.n)+1024 { // numbers that no loader gives: a damaged or hostile recording
			delete(t.epochs, key)
			continue
		}
		total += size
	}
	times := slices.Grow(k.scratch.sent[:0], int(total))[:total]
	k.scratch.sent = times
	for i := range times {
		times[i] = load.Unknown
	}
	for _, e := range t.epochs {
		size := int64(e.high) - int64(e.low) + 1
		e.times, times = times[:size:size], times[size:]
	}
	t.last = nil
	k.runs(t, func(e *sentEpoch, run []load.Batch) {
		if e.times == nil {
			return
		}
		for i := range run {
			e.times[run[i].Index-e.low] = run[i].Sent
		}
	})
	return t
}

// runs visits what every worker built for training, the batches of one epoch after another at a time.
func (k *rank) runs(t *sentTable, visit func(*sentEpoch, []load.Batch)) {
	for _, l := range k.Loaders {
		if !k.trains.has(l.ID) {
			continue
		}
		for _, builds := range l.Builds {
			if builds.Own {
				continue
			}
			for rest := builds.Batches; len(rest) > 0; {
				n := 1
				for n < len(rest) && rest[n].Epoch == rest[0].Epoch {
					n++
				}
				visit(t.at(loaderEpoch{l.ID, rest[0].Epoch}, true), rest[:n])
				rest = rest[n:]
			}
		}
	}
}

func (t *sentTable) at(key loaderEpoch, create bool) *sentEpoch {
	if t.last != nil && t.key == key {
		return t.last
	}
	e := t.epochs[key]
	if e == nil && create {
		e = &sentEpoch{}
		t.epochs[key] = e
	}
	t.last, t.key = e, key
	return e
}

// of returns when the batch of f was sent.
func (t *sentTable) of(f *load.Fetch) (int64, bool) {
	e := t.at(loaderEpoch{f.Loader, f.Epoch}, false)
	if e == nil || e.times == nil || f.Batch < e.low || f.Batch > e.high {
		return 0, false
	}
	sent := e.times[f.Batch-e.low]
	return sent, sent != load.Unknown && sent <= f.Exit
}

package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// around is what lies around the steady steps of the rank that decides.
func (r *run) around(k *rank) loader.Around {
	live := k.trained()
	return loader.Around{
		Stalls: k.steady.stalls.found(live), Straggler: r.straggler(k), Stream: k.stream, Cold: k.cold.found(&k.steady, live),
		Again:  loader.Again{Read: k.crew.again.value(noCost), FromDisk: k.crew.againDisk.value(noCost)},
		Growth: k.growth(), Shared: sharedMemory(k.Node),
	}
}

// sharedMemory is the node's /dev/shm by the newest of its agent's notes, which tells the least that was free so far.
func sharedMemory(n *load.Node) (s loader.SharedMemory) {
	for i := range n.Notes {
		for _, note := range n.Notes[i].Hosts {
			size, ok := note.SharedBytes.Get()
			if !ok {
				continue
			}
			s = loader.SharedMemory{Size: unit.Some(float64(size)), Free: unit.None[float64](noAgent)}
			if free, ok := note.SharedFree.Get(); ok {
				s.Free = unit.Some(float64(free))
			}
		}
	}
	return s
}

// lockstep is how far the steps of ranks may differ that wait for one another.
const lockstep = 0.1

// straggler compares the rank with the others, if all make their steps together.
func (r *run) straggler(k *rank) (s loader.Straggler) {
	own := k.steady.time / max(1, int64(k.steady.steps))
	var waits []float64
	var build mean
	for _, o := range r.ranked {
		if o == k || o.steady.steps == 0 || o.unfed() || o.Number == k.Number {
			continue
		}
		if step := o.steady.time / int64(o.steady.steps); float64(max(step-own, own-step)) > lockstep*float64(own) {
			return loader.Straggler{}
		}
		waits = append(waits, float64(o.steady.wait)/float64(o.steady.time))
		if sum, n := o.crew.build.Sums(); n > 0 {
			build.add(sum, n)
		}
	}
	if len(waits) == 0 || k.steady.time == 0 {
		return s
	}
	slices.Sort(waits)
	s = loader.Straggler{Rank: k.Number, Ranks: len(waits) + 1, Wait: float64(k.steady.wait) / float64(k.steady.time), Others: waits[len(waits)/2]}
	s.Build = unit.None[float64](noBuilds)
	if sum, n := k.crew.build.Sums(); n > 0 && build.weight > 0 && sum > 0 {
		s.Build = unit.Some(build.sum / build.weight / (sum / n))
	}
	return s
}

// streamOf says which workers of a dataset that is iterated over give batches, and whether its epochs are as long as it declares.
func (k *rank) streamOf(l *load.Loader) (s loader.Stream) {
	if !l.Note.Iterable.Or(false) {
		return s
	}
	s.Workers, _ = k.workers(l.ID)
	s.Delivering = k.delivering(l)
	samples, ok := l.Note.DatasetLength.Get()
	size, okSize := l.Note.Arguments.BatchSize.Get()
	if ok && okSize && size > 0 && samples > 0 && samples < 1<<40 {
		s.Declared = int((samples + size - 1) / size)
		s.Delivered = k.wholeEpochs(l)
	}
	return s
}

// delivering counts the workers that gave a batch; 0 where some builds were not seen, for then a worker may have given those.
func (k *rank) delivering(l *load.Loader) int {
	numbers, built, fetched := map[int]bool{}, 0, 0
	for _, b := range l.Builds {
		if b.Own || b.Worker < 0 && len(b.Batches) > 0 {
			return 0
		}
		if len(b.Batches) > 0 {
			numbers[b.Worker] = true
			built += len(b.Batches)
		}
	}
	for i := range k.Fetches {
		if f := &k.Fetches[i]; f.Loader == l.ID && f.Delivered() && !f.Test() {
			fetched++
		}
	}
	if 10*built < 9*fetched {
		return 0
	}
	return len(numbers)
}

// wholeEpochs is how many batches an epoch had, on average over those that were seen from their first to their end; 0 without any.
func (k *rank) wholeEpochs(l *load.Loader) int {
	n, sum, epochs, whole := 0, 0, 0, false
	for i := range k.Fetches {
		f := &k.Fetches[i]
		switch {
		case f.Loader != l.ID || f.Upstream():
			continue
		case f.Test():
			whole = false
			continue
		case f.Is(recording.FetchFirst):
			n, whole = 0, true
		}
		if f.Delivered() {
			n++
		}
		if f.Is(recording.FetchEnd) && whole && n > 0 {
			sum, epochs, whole = sum+n, epochs+1, false
		}
	}
	if epochs == 0 {
		return 0
	}
	return sum / epochs
}

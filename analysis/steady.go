package analysis

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
)

// steadyState is what the steps of a rank that stand for all others add up to. Times are ns.
type steadyState struct {
	steps    int
	time     int64
	wait     int64
	blind    int64 // of wait: no device clock
	fetches  int
	handoff  int64            // over joined fetches
	joined   int              // fetches whose batch was found
	arrivals arrivals         // of those: how long next() took, by how long ago the batch had been sent
	handoffs map[uint16]*mean // seconds per joined fetch, by loader
	handed   *mean            // of the loader that handed over last
	handedBy uint16
	cpu      int64 // of the training thread
	clocked  int   // steps whose cpu is known
	mean     *stat.Ratio
	share    *stat.Ratio // wait
	exposed  *stat.Ratio
	waited   *stat.Ratio // wait, per step
	idled    *stat.Ratio // exposed wait, per step
	waits    stat.Durations
	runs     spans // where those steps lie
	opening  int64 // Σ epoch starts in live time
	starts   []opening
	stalls   stalls
	books    ledger.Totals // of those steps
}

// opening is one epoch start of a training loader.
type opening struct {
	loader uint16
	ns     int64
}

// gather finds the steps that stand for all others, and adds them up.
func (k *rank) gather() {
	st := &k.steady
	each := k.batchSize()
	st.mean, st.share, st.exposed = stat.Batch(each), stat.Batch(each), stat.Batch(each)
	st.handoffs = map[uint16]*mean{}
	st.waited, st.idled = stat.Batch(each), stat.Batch(each)
	sent := k.sent()
	type handed struct {
		loader uint16
		ns     int64
		early  int64 // how long the batch had been sent; below 0: it was waited for
	}
	k.film = newFilm(k.steps)
	var pending []handed // of the step under way
	k.walk(func(_ *step, f *load.Fetch) {
		if built, ok := sent.of(f); ok {
			pending = append(pending, handed{f.Loader, max(0, f.Exit-max(f.Enter, built)), f.Enter - built})
		}
		k.film.fetch(f)
	}, func(s *step) {
		st.stalls.see(s)
		k.cold.see(s)
		k.film.take(s)
		if s.counts() {
			st.add(s)
			for _, h := range pending {
				st.hand(h.loader, h.ns)
				st.arrivals.add(h.early, h.ns)
			}
		}
		pending = pending[:0]
	})
}

func (st *steadyState) add(s *step) {
	time := s.end - s.begin
	st.steps++
	st.time += time
	st.wait += s.wait
	st.blind += s.blind
	st.fetches += s.fetches
	if s.cpu != load.Unknown {
		st.cpu += s.cpu
		st.clocked++
	}
	st.mean.Add(float64(time), 1)
	st.share.Add(float64(s.wait), float64(time))
	st.waited.Add(float64(s.wait), 1)
	if s.blind == 0 { // else part of the exposure would be missing from the sum
		st.exposed.Add(float64(s.idle), float64(time))
		st.idled.Add(float64(s.idle), 1)
	}
	st.waits.Add(s.wait)
	st.runs = st.runs.add(s.begin, s.end)
}

// hand books a hand-off of a loader.
func (st *steadyState) hand(loader uint16, ns int64) {
	st.handoff += ns
	st.joined++
	if st.handed == nil || st.handedBy != loader {
		if st.handoffs[loader] == nil {
			st.handoffs[loader] = &mean{}
		}
		st.handed, st.handedBy = st.handoffs[loader], loader
	}
	st.handed.add(float64(ns)/1e9, 1)
}

// batchSize is how many neighbouring steps are taken together for an interval: two rounds of the workers, if that leaves eight.
func (k *rank) batchSize() int {
	workers := 0
	for _, id := range k.trains.ids {
		n, _ := k.workers(id)
		workers = max(workers, n)
	}
	steps := len(k.Steps)
	if k.byFetch {
		steps = len(k.Fetches)
	}
	return max(1, min(max(10, 2*workers), steps/8))
}

// openings finds what each epoch start of a training loader took: making the iterator, and its first fetch. The two are added up
// rather than taken from begin to end, for an iterator may be made long before it is used.
func (k *rank) openings() {
	made := map[[2]uint32]int64{}
	for i := range k.Iterators {
		if it := &k.Iterators[i]; k.trains.has(it.Loader) && k.live.holds(it.Begin) {
			made[[2]uint32{uint32(it.Loader), it.Epoch}] += it.End - it.Begin
			k.alive(it.Begin, it.End)
		}
	}
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if !k.training(f) || f.Test() || !k.live.holds(f.Enter) {
			continue
		}
		k.alive(f.Enter, f.Exit)
		if !f.Is(recording.FetchFirst) {
			continue
		}
		took := f.Wait() + made[[2]uint32{uint32(f.Loader), f.Epoch}]
		k.steady.opening += took
		k.steady.starts = append(k.steady.starts, opening{f.Loader, took})
	}
	for _, x := range k.live { // steps are in order: of those in a stretch, the first and the last tell
		first, behind := firstStep(k.Steps, x.begin), firstStep(k.Steps, x.end)
		if first < behind {
			k.alive(k.Steps[first].End, k.Steps[behind-1].End)
		}
	}
}

// firstStep returns the index of the first step that ended at t or later.
func firstStep(steps []load.Step, t int64) int {
	i, _ := slices.BinarySearchFunc(steps, t, func(s load.Step, t int64) int { return cmp.Compare(s.End, t) })
	return i
}

// alive widens the time of live training.
func (k *rank) alive(begin, end int64) {
	if k.ended == 0 || begin < k.begun {
		k.begun = begin
	}
	k.ended = max(k.ended, end)
}

// trained returns how long the rank trained live, from its first sign to its last.
func (k *rank) trained() (ns int64) {
	for _, s := range k.live {
		ns += max(0, min(s.end, k.ended)-max(s.begin, k.begun))
	}
	return ns
}

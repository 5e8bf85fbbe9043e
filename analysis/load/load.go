package load

import (
	"cmp"
	"slices"
)

// Load reads what the process did, fetch by fetch and step by step, and what was built for it. It takes the memory for that out of
// the room, and Unload gives it back. Reading is what it came to; the rank may be loaded once.
func (r *Rank) Load(room *Room) (all Reading, err error) {
	var stacks stackFold // two streams of one ring (an agent that was restarted) tell the same sums
	r.Fetches, r.Steps = room.fetches(r.fetches), room.steps(r.steps)
	for i, from := range r.sources {
		m := mainFold{rank: r, room: room, builds: map[uint16]*Builds{}, stacks: &stacks}
		beside := r.workers
		if i < len(r.sources)-1 { // all workers beside the last stream, which is nearly always the only one
			beside = nil
		}
		reading, err := from.beside(m.take, beside, r.fetches, room)
		if err != nil {
			return all, err
		}
		reading.Bad += m.bad
		all.Add(reading)
	}
	r.order()
	r.Fetched = len(r.Fetches)
	r.joinNotes()
	r.joinStacks(&stacks)
	all.Orphans += r.joinThreads()
	for _, w := range r.workers {
		all.Orphans += r.join(w)
	}
	slices.SortFunc(r.Loaders, func(a, b *Loader) int { return cmp.Compare(a.ID, b.ID) })
	for _, l := range r.Loaders {
		l.countWorkers()
	}
	return all, nil
}

// Unload forgets the timeline and the batches, but not what they were counted to.
func (r *Rank) Unload(room *Room) {
	room.free(r.Fetches, r.Steps)
	r.Fetches, r.Steps = nil, nil
	for _, l := range r.Loaders {
		for _, b := range l.Builds {
			room.giveBack(b)
		}
	}
}

// Room is memory for timelines, which one rank after another may use. The zero Room is empty. It is for one goroutine.
type Room struct {
	spareFetches [][]Fetch
	spareSteps   [][]Step
	spareBatches [][]Batch
	spareWindows [][]Window
}

func (r *Room) fetches(n int) []Fetch  { return spare(&r.spareFetches, n) }
func (r *Room) steps(n int) []Step     { return spare(&r.spareSteps, n) }
func (r *Room) windows(n int) []Window { return spare(&r.spareWindows, n) }

// spare returns an empty slice with room for n; one that is too small is the collector's. Ranks of a job do about as much as one another,
// so a new one has an eighth to spare for those that did a little more.
func spare[T any](stack *[][]T, n int) []T {
	if last := pop(stack); cap(last) >= n {
		return last[:0]
	}
	return make([]T, 0, n+n/8)
}

func pop[T any](stack *[][]T) (last []T) {
	if n := len(*stack); n > 0 {
		last = (*stack)[n-1]
		*stack = (*stack)[:n-1]
	}
	return last
}

// batches returns an empty slice with room for about n batches: how many there are is not known before.
func (r *Room) batches(n int) []Batch { return spare(&r.spareBatches, n) }

func (r *Room) free(f []Fetch, s []Step) {
	r.spareFetches, r.spareSteps = append(r.spareFetches, f), append(r.spareSteps, s)
}

func (r *Room) giveBack(b *Builds) {
	if cap(b.Batches) > 0 {
		r.spareBatches = append(r.spareBatches, b.Batches)
	}
	b.Batches = nil
}

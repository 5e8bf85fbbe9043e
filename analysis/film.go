package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader/replay"
)

// The replay gets this many batches: all of a short run, else stretches of neighbours from all over it.
const (
	filmed  = 1024
	stretch = 128 // whole rounds of any usual number of workers
)

// film is steady steps batch by batch, as far as a replay needs them.
type film struct {
	every   int // steps from the beginning of one stretch to the next
	step    int // counted since the beginning of the last stretch
	pending []shot
	shots   []shot
}

// shot is one batch of a step.
type shot struct {
	loader  uint16
	epoch   uint32
	batch   uint32
	inside  float64 // seconds in next()
	outside float64 // seconds of its step outside next(), an equal part of them
	wall    float64 // its build; NaN if it was not seen
	off     float64 // of the build: neither on the CPU nor waiting for it
	cpu     float64
}

func newFilm(steps int) film { return film{every: max(stretch, steps/(filmed/stretch))} }

// fetch notes a batch of the step under way.
func (m *film) fetch(f *load.Fetch) {
	if m.step < stretch && len(m.shots) < filmed {
		m.pending = append(m.pending, shot{loader: f.Loader, epoch: f.Epoch, batch: f.Batch, inside: float64(f.Wait()) / 1e9, wall: math.NaN()})
	}
}

// take keeps the step under way if it stands for all others.
func (m *film) take(s *step) {
	if s.counts() {
		if m.step++; m.step == m.every {
			m.step = 0
		}
		if len(m.pending) > 0 || m.step < stretch {
			m.keep(float64(s.end-s.begin-s.wait) / 1e9)
		}
	}
	m.pending = m.pending[:0]
}

// keep ends a step that was so long outside next(), in seconds.
func (m *film) keep(outside float64) {
	if len(m.pending) == 0 && len(m.shots) > 0 { // a step on batches that were fetched before
		m.shots[len(m.shots)-1].outside += outside
	}
	for _, p := range m.pending {
		p.outside = outside / float64(len(m.pending))
		m.shots = append(m.shots, p)
	}
}

// tape finds the builds of the batches that were kept. Without that of nearly every one there is no tape.
func (k *rank) tape(l *load.Loader) replay.Tape {
	shots := k.film.shots
	if len(k.trains.ids) != 1 || len(shots) == 0 {
		return nil
	}
	if k.builds(l.ID) {
		for i := range shots {
			shots[i].wall = shots[i].inside
		}
	} else {
		k.findBuilds(l, shots)
	}
	whole, missing := true, 0
	for i := range shots {
		if shots[i].wall != shots[i].wall {
			missing++
		} else {
			whole = whole && shots[i].off == shots[i].off
		}
	}
	if 20*missing > len(shots) {
		return nil
	}
	var tape replay.Tape
	for _, s := range shots {
		switch {
		case s.wall != s.wall:
		case whole:
			tape = append(tape, replay.Batch{Wait: float32(s.off), CPU: float32(s.cpu), Outside: float32(s.outside)})
		default: // builds differ as a whole
			tape = append(tape, replay.Batch{Wait: float32(s.wall), CPU: float32(s.wall), Outside: float32(s.outside)})
		}
	}
	return tape
}

// findBuilds looks up who built what: a worker's batches are in order.
func (k *rank) findBuilds(l *load.Loader, shots []shot) {
	of := map[uint32][]*load.Builds{} // by epoch
	for _, b := range l.Builds {
		last, begun := uint32(0), false
		for i := range b.Batches {
			if e := b.Batches[i].Epoch; !begun || e != last {
				of[e] = append(of[e], b)
				last, begun = e, true
			}
		}
	}
	for i := range shots {
		s := &shots[i]
		if s.loader != l.ID {
			continue
		}
		for _, b := range of[s.epoch] {
			at, ok := slices.BinarySearchFunc(b.Batches, s, func(b load.Batch, s *shot) int {
				return cmp.Or(cmp.Compare(b.Epoch, s.epoch), cmp.Compare(b.Index, s.batch))
			})
			if ok {
				s.built(&b.Batches[at], &b.Costs)
				break
			}
		}
	}
}

// built notes how long the batch took to build, and on what, if that was kept batch by batch.
func (s *shot) built(b *load.Batch, costs *load.Series) {
	s.wall, s.off, s.cpu = float64(b.End-b.Begin)/1e9, math.NaN(), math.NaN()
	low, high := 0, costs.Len()
	for low < high {
		mid := (low + high) / 2
		if begin, _, _, _ := costs.At(mid, load.CostWall); begin < b.Begin {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == costs.Len() {
		return
	}
	begin, _, n, cpu := costs.At(low, load.CostCPU)
	if begin != b.Begin || n != 1 {
		return
	}
	if off, ok := offAt(costs, low); ok {
		s.off, s.cpu = off, float64(cpu)
	}
}

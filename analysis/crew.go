package analysis

import (
	"math"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// crew is the processes that build for one loader: what they did, over all ranks and in live time only: while the test serves batches from
// memory the workers have nothing to do.
type crew struct {
	id       uint16
	role     string
	note     recording.LoaderNote
	noted    bool
	workers  int
	length   unit.Maybe[int]
	prefetch unit.Maybe[int]
	fetches  int
	wait     int64
	epochs   int
	inMain   bool // the training process builds batches itself
	threads  int  // a worker may use; 0 = unknown

	build    *stat.Ratio // wall seconds per batch
	builds   int
	squares  float64 // Σ wall²
	solo     []float64
	soloOff  []float64
	cpu, off *stat.Ratio // per batch, where both clocks were read
	costs    [load.CostFields]mean
	starts   []float64 // seconds
	handoff  int64
	joined   int
	received mean // bytes per batch, over sockets
}

// mean is a weighted sum and its weight.
type mean struct{ sum, weight float64 }

func (m *mean) add(sum, weight float64) { m.sum += sum; m.weight += weight }

func (m mean) value(why string) Ratio { return quotient(m.sum, m.weight, why) }

func newCrew(id uint16) *crew {
	return &crew{id: id, role: "other", build: stat.Batch(8), cpu: stat.Batch(1), off: stat.Batch(1)}
}

func (b *crew) add(k *rank, l *load.Loader) {
	if l.Noted && !b.noted {
		b.note, b.noted = l.Note, true
	}
	b.role = stronger(b.role, k.roleOf(l))
	b.workers = max(b.workers, l.Workers())
	epochs := 0
	for i := range k.Iterators {
		it := &k.Iterators[i]
		if it.Loader != l.ID {
			continue
		}
		epochs++
		b.workers = max(b.workers, int(min(it.Workers, 1<<16)))
		if it.Length != recording.Unknown32 {
			b.length = unit.Some(int(it.Length))
		}
		if it.Prefetch != recording.Unknown32 {
			b.prefetch = unit.Some(int(it.Prefetch))
		}
	}
	b.epochs = max(b.epochs, epochs)
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if f.Loader == l.ID && !f.Upstream() && !f.Test() {
			b.wait += f.Wait()
			if f.Delivered() {
				b.fetches++
			}
		}
	}
	if l.Summed && b.fetches < int(min(l.Sums.Fetches.Or(0), math.MaxInt32)) && len(k.Fetches) == 0 {
		b.fetches += int(min(l.Sums.Fetches.Or(0), math.MaxInt32))
		b.wait += int64(min(l.Sums.WaitNS.Or(0), 1<<60))
	}
	for _, s := range k.steady.starts {
		if s.loader == l.ID {
			b.starts = append(b.starts, float64(s.ns)/1e9)
		}
	}
	if k.trains.has(l.ID) {
		b.handoff += k.steady.handoff
		b.joined += k.steady.joined
	}
	for _, builds := range l.Builds {
		b.addBuilds(k, builds)
	}
	if k.workers(l.ID) == 0 && l.Note.Kind != "watch" {
		b.addOwn(k, l)
	}
	b.addSolo(l)
}

func stronger(a, b string) string {
	for _, role := range []string{"training", "validation"} {
		if a == role || b == role {
			return role
		}
	}
	return "other"
}

func (k *rank) roleOf(l *load.Loader) string {
	if k.trains.has(l.ID) {
		return "training"
	}
	for i := range k.Fetches {
		if f := &k.Fetches[i]; f.Loader == l.ID && k.validates(f) {
			return "validation"
		}
	}
	return "other"
}

func (b *crew) addBuilds(k *rank, builds *load.Builds) {
	b.inMain = b.inMain || builds.Own
	b.threads = max(b.threads, builds.Threads)
	for i := range builds.Batches {
		batch := &builds.Batches[i]
		if !k.live.holds(batch.Begin) {
			continue
		}
		wall := float64(batch.End-batch.Begin) / 1e9
		b.build.Add(wall, 1)
		b.builds++
		b.squares += wall * wall
	}
	for field := range b.costs {
		b.costs[field].add(builds.Costs.Sum(field, k.live.holds))
	}
	for i := range builds.Costs.Len() {
		begin, end, n, cpu := builds.Costs.At(i, load.CostCPU)
		if cpu != cpu || !k.live.holds(begin+(end-begin)/2) {
			continue
		}
		b.cpu.Add(float64(cpu)*n, n)
		if off, ok := offAt(&builds.Costs, i); ok {
			b.off.Add(off*n, n)
		}
	}
	if p := k.Node.Usage.Processes[uint32(builds.PID)]; p != nil && p.Role == recording.RoleWorker {
		if sum, seconds := p.Usage.Sum(load.ProcessReceived, k.live.holds); seconds > 0 {
			n := 0
			for i := range builds.Batches {
				if k.live.holds(builds.Batches[i].Begin) {
					n++
				}
			}
			b.received.add(sum, float64(n))
		}
	}
}

// addOwn takes the fetches of a loader without workers: each builds its batch.
func (b *crew) addOwn(k *rank, l *load.Loader) {
	b.inMain = true
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if f.Loader != l.ID || f.Upstream() || f.Test() || !f.Delivered() || f.Is(recording.FetchFirst) || !k.live.holds(f.Enter) {
			continue
		}
		wall := float64(f.Wait()) / 1e9
		b.build.Add(wall, 1)
		b.builds++
		b.squares += wall * wall
	}
}

// addSolo finds the batches that were built while all other workers were idle.
func (b *crew) addSolo(l *load.Loader) {
	for _, s := range l.Solos {
		for _, builds := range l.Builds {
			for i := range builds.Batches {
				if batch := &builds.Batches[i]; batch.Index == s.Batch && batch.Epoch == s.Epoch {
					b.solo = append(b.solo, float64(batch.End-batch.Begin)/1e9)
					b.addSoloOff(&builds.Costs, batch.Begin)
				}
			}
		}
	}
}

// addSoloOff finds the same build among the costs, if they are kept batch by batch.
func (b *crew) addSoloOff(costs *load.Series, begin int64) {
	for i := range costs.Len() {
		if at, _, n, _ := costs.At(i, load.CostWall); at != begin || n != 1 {
			continue
		}
		if off, ok := offAt(costs, i); ok {
			b.soloOff = append(b.soloOff, off)
		}
	}
}

// offAt is wall − CPU − run queue of one reading; ok is false where one of them is missing.
func offAt(costs *load.Series, i int) (seconds float64, ok bool) {
	_, _, _, wall := costs.At(i, load.CostMeasured)
	_, _, _, cpu := costs.At(i, load.CostCPU)
	_, _, _, queue := costs.At(i, load.CostRunQueue)
	off := float64(wall) - float64(cpu) - float64(queue)
	return max(0, off), off == off
}

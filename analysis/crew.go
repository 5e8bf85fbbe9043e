package analysis

import (
	"math"
	"time"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/reuse"
	"github.com/datawait/datawait/analysis/stage"
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

	build            *stat.Ratio // wall seconds per batch
	builds           int
	squares          float64 // Σ wall²
	solo             []float64
	soloOff          []float64
	cpu, off         *stat.Ratio // per batch, where both clocks were read
	costs            [load.CostFields]mean
	starts           []float64 // seconds
	handoff          mean      // seconds per fetch
	again, againDisk mean      // bytes per batch that later epochs read, and of them from a disk
	received         mean      // bytes per batch, over sockets
	cost             readCost
	samples          map[*load.Node][]reuse.Sample // of what was read, by builder
	stacks           stage.Tree
}

// mean is a weighted sum and its weight.
type mean struct{ sum, weight float64 }

func (m *mean) add(sum, weight float64) { m.sum += sum; m.weight += weight }

func (m mean) value(why string) Ratio { return quotient(m.sum, m.weight, why) }

func newCrew(id uint16) *crew {
	return &crew{id: id, role: "other", build: stat.Batch(8), cpu: stat.Batch(1), off: stat.Batch(1), samples: map[*load.Node][]reuse.Sample{}}
}

// add takes a loader of one rank, its fetches apart.
func (b *crew) add(k *rank, l *load.Loader) {
	if l.Noted && !b.noted {
		b.note, b.noted = l.Note, true
	}
	b.role = stronger(b.role, k.roleOf(l.ID))
	n, _ := k.workers(l.ID)
	b.workers = max(b.workers, l.Workers(), n)
	b.addIterators(k, l)
	if k.lossy(l) {
		b.fetches += int(min(l.Sums.Fetches.Or(0), math.MaxInt32))
		b.wait += int64(min(l.Sums.WaitNS.Or(0), 1<<60))
	}
	for _, s := range k.steady.starts {
		if s.loader == l.ID {
			b.starts = append(b.starts, float64(s.ns)/1e9)
		}
	}
	if h := k.steady.handoffs[l.ID]; h != nil {
		b.handoff.add(h.sum, h.weight)
	}
	for _, builds := range l.Builds {
		b.addBuilds(k, builds)
	}
	b.addSolo(l)
	b.looked(l)
}

func (b *crew) addIterators(k *rank, l *load.Loader) {
	epochs := 0
	for i := range l.Iterators {
		it := &k.Iterators[l.Iterators[i]]
		epochs++
		if it.Workers != recording.Unknown32 {
			b.workers = max(b.workers, int(min(it.Workers, 1<<16)))
		}
		if it.Length != recording.Unknown32 {
			b.length = unit.Some(int(it.Length))
		}
		if it.Prefetch != recording.Unknown32 {
			b.prefetch = unit.Some(int(it.Prefetch))
		}
	}
	b.epochs = max(b.epochs, epochs)
}

// addFetch takes a fetch. Without workers (own) it is also the build of its batch; where totals tell more, it is not counted.
func (b *crew) addFetch(k *rank, f *load.Fetch, own, counted bool) {
	if f.Upstream() || f.Test() {
		return
	}
	if counted {
		b.wait += f.Wait()
	}
	if !f.Delivered() {
		return
	}
	if counted {
		b.fetches++
	}
	if own {
		b.inMain = true
		if !f.Is(recording.FetchFirst) && k.live.holds(f.Enter) {
			b.built(f.Wait())
		}
	}
}

// built counts one batch.
func (b *crew) built(ns int64) {
	wall := float64(ns) / 1e9
	b.build.Add(wall, 1)
	b.builds++
	b.squares += wall * wall
}

func stronger(a, b string) string {
	for _, role := range []string{"training", "validation"} {
		if a == role || b == role {
			return role
		}
	}
	return "other"
}

func (k *rank) roleOf(loader uint16) string {
	switch {
	case k.trains.has(loader):
		return "training"
	case k.validating.has(loader):
		return "validation"
	}
	return "other"
}

// addBuilds takes what one process built. Its first batch is left out: opening the dataset and filling caches belongs to the epoch
// start, unless there is nothing else.
func (b *crew) addBuilds(k *rank, builds *load.Builds) {
	b.inMain = b.inMain || builds.Own
	b.threads = max(b.threads, builds.Threads, threadsOf(k.Node.Usage.Processes[uint32(builds.PID)]))
	batches, after := builds.Batches, load.Unknown
	if len(batches) > 1 {
		after = batches[0].End
		batches = batches[1:]
	}
	seen := 0
	for i := range batches {
		if batch := &batches[i]; k.live.holds(batch.Begin) && batch.Begin >= k.cold.until {
			b.built(batch.End - batch.Begin)
			seen++
		}
	}
	after = max(after, k.cold.until)
	keep := func(t int64) bool { return t > after && k.live.holds(t) }
	sums, weights := builds.Costs.Sums(keep)
	for field := range sums {
		b.costs[field].add(sums[field], weights[field])
	}
	b.cost.add(&builds.Costs, keep)
	if len(builds.Reads.Readings) > 0 {
		b.samples[k.Node] = append(b.samples[k.Node], builds.Reads.Sample)
	}
	if second := k.cold.second; second > 0 {
		later := func(t int64) bool { return t >= second && keep(t) }
		b.again.add(builds.Costs.Sum(load.CostRChar, later))
		b.againDisk.add(builds.Costs.Sum(load.CostReadBytes, later))
	}
	for i := range builds.Costs.Len() {
		begin, end, n, cpu := builds.Costs.At(i, load.CostCPU)
		if cpu != cpu || !keep(begin+(end-begin)/2) {
			continue
		}
		b.cpu.Add(float64(cpu)*n, n)
		if off, ok := offAt(&builds.Costs, i); ok {
			b.off.Add(off*n, n)
		}
	}
	if p := k.Node.Usage.Processes[uint32(builds.PID)]; p != nil && p.Role == recording.RoleWorker && seen > 0 {
		b.received.add(received(p, builds.Batches, keep))
	}
}

// apart are the threads of a worker that no library asked for: the queue's feeder, and one of the hook's.
const apart = 2

// pool is the number of threads from which they are taken for a library's: a worker has a few of its own.
const pool = 8

// threadsOf is how many threads a worker's libraries were seen to run, whatever they were allowed when it started: worker_init_fn may raise it.
func threadsOf(p *load.Process) (n int) {
	if p == nil || p.Role != recording.RoleWorker {
		return 0
	}
	for i := range p.Usage.Len() {
		if _, _, _, v := p.Usage.At(i, load.ProcessThreads); v == v && v < 1<<16 {
			n = max(n, int(v)-apart)
		}
	}
	if n < pool {
		return 0
	}
	return n
}

// received adds up what a worker received over sockets in the windows in which that is known, and the batches it built in them: its
// start and its last second are in no window. A batch that reaches over an edge counts by the part of it that lies inside.
func received(p *load.Process, batches []load.Batch, keep func(int64) bool) (bytes, built float64) {
	next := 0
	for i := range p.Usage.Len() {
		begin, end, seconds, rate := p.Usage.At(i, load.ProcessReceived)
		if rate != rate || !keep(begin+(end-begin)/2) {
			continue
		}
		bytes += float64(rate) * seconds
		for next < len(batches) && batches[next].End <= begin {
			next++
		}
		for _, batch := range batches[next:] {
			if batch.Begin >= end {
				break
			}
			inside := min(batch.End, end) - max(batch.Begin, begin)
			built += float64(inside) / float64(max(1, batch.End-batch.Begin))
		}
	}
	if built == 0 {
		return 0, 0
	}
	return bytes, built
}

// addSolo finds the batches that were built while all other workers were idle.
func (b *crew) addSolo(l *load.Loader) {
	watched := l.Note.Kind == "watch"
	for _, s := range l.Solos {
		for _, builds := range l.Builds {
			for i := range builds.Batches {
				if batch := &builds.Batches[i]; isAskedFor(batch, s, watched) {
					b.solo = append(b.solo, float64(batch.End-batch.Begin)/1e9)
					b.addSoloOff(&builds.Costs, batch.Begin)
				}
			}
		}
	}
}

// isAskedFor reports whether a build is the one that was asked for alone. Builders outside PyTorch do not know their epoch; among
// builds of one index, which are an epoch apart, theirs is the one that began when it was asked for.
func isAskedFor(batch *load.Batch, s recording.Solo, watched bool) bool {
	if batch.Index != s.Batch || s.T > math.MaxInt64 {
		return false
	}
	if watched {
		apart := time.Duration(batch.Begin - int64(s.T))
		return apart.Abs() < time.Second/2
	}
	return batch.Epoch == s.Epoch
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

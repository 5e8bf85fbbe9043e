package analysis

import (
	"encoding/json"
	"math"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// loaders writes where a batch's time goes, a row per loader; the same loader of several ranks is one row.
func (r *run) loaders() {
	rows := map[uint16]*bench{}
	for _, k := range r.ranked {
		for _, l := range k.Loaders {
			b := rows[l.ID]
			if b == nil {
				b = newBench(l.ID)
				rows[l.ID] = b
			}
			b.add(k, l)
		}
	}
	for _, id := range sorted(rows) {
		r.out.Loaders = append(r.out.Loaders, rows[id].row())
	}
	r.benches = rows
}

// bench gathers what the builders of one loader did, over all ranks and in live time only: while the test serves batches from
// memory the workers have nothing to do.
type bench struct {
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

func newBench(id uint16) *bench {
	return &bench{id: id, role: "other", build: stat.Batch(8), cpu: stat.Batch(1), off: stat.Batch(1)}
}

func (b *bench) add(k *rank, l *load.Loader) {
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

func (b *bench) addBuilds(k *rank, builds *load.Builds) {
	if builds.PID == k.Declaration.PID {
		b.inMain = true
	}
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
func (b *bench) addOwn(k *rank, l *load.Loader) {
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
func (b *bench) addSolo(l *load.Loader) {
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
func (b *bench) addSoloOff(costs *load.Series, begin int64) {
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

const (
	noBuilds = "no batch of this loader was seen being built"
	noCost   = "the builders' counters could not be read"
)

func (b *bench) row() Loader {
	l := Loader{ID: int(b.id), Role: b.role, Kind: b.note.Kind, Dataset: b.note.Dataset, Arguments: arguments(b.note),
		WorkersSeen: b.workers, BatchesPerEpoch: b.length, Fetches: b.fetches, WaitSeconds: float64(b.wait) / 1e9, Epochs: b.epochs}
	if n, ok := b.note.Length.Get(); ok && !b.length.IsKnown() && n >= 0 && n < math.MaxInt32 {
		l.BatchesPerEpoch = unit.Some(int(n))
	}
	cost := func(field int) Ratio { return b.costs[field].value(noCost) }
	l.BuildSeconds = estimate(b.build, b.builds, stat.GradeA, "hook clock", noBuilds)
	l.SoloBuildSeconds = meanOf(b.solo, "no batch was built alone: only the cached-data test asks for that")
	l.CPUSeconds, l.ProcessCPUSeconds = cost(load.CostCPU), cost(load.CostProcessCPU)
	l.RunQueueSeconds, l.CollateSeconds = cost(load.CostRunQueue), cost(load.CostCollate)
	l.OffCPUSeconds = unit.None[float64]("CPU time or run-queue time of the builders could not be read")
	if off, ok := b.off.Value(); ok {
		l.OffCPUSeconds = unit.Some(off)
	}
	l.BatchBytes, l.Tensors = cost(load.CostBytes), cost(load.CostTensors)
	l.Files, l.Requests, l.Samples = cost(load.CostFiles), cost(load.CostRequests), cost(load.CostSamples)
	l.Bytes, l.BytesSource = b.bytes()
	l.EpochStartSeconds = meanOf(b.starts, "no epoch start was recorded")
	l.HandoffSeconds = quotient(float64(b.handoff)/1e9, float64(b.joined), "no fetch could be joined with its batch")
	if b.inMain && b.workers == 0 {
		l.HandoffSeconds = unit.NotSupported[float64]("the training process builds its batches itself: nothing is handed over")
	}
	return l
}

// bytes is what was read per batch, by the best source there is.
func (b *bench) bytes() (Ratio, string) {
	files, sockets := b.costs[load.CostRChar], b.received
	switch {
	case sockets.weight > 0 && files.weight > 0:
		return unit.Some(sockets.sum/sockets.weight + files.sum/files.weight), "socket diagnostics and read counters (grade B)"
	case sockets.weight > 0:
		return sockets.value(""), "socket diagnostics (grade B)"
	case files.weight > 0:
		return files.value(""), "read counters: a lower bound, blind to sockets, mmap and FUSE (grade C)"
	}
	return unit.None[float64]("no source saw what the builders read"), ""
}

func meanOf(v []float64, why string) Est {
	i, ok := stat.Mean(v)
	if len(v) == 1 { // measured, though nothing is known of its spread
		return unit.Some(stat.Exact(v[0]).Estimate(1, stat.GradeC, "hook clock"))
	}
	if !ok {
		return unit.None[stat.Estimate](why)
	}
	return unit.Some(i.Clamp(0, math.Inf(1)).Estimate(len(v), stat.GradeA, "hook clock"))
}

// arguments returns what the loader was made with, as it goes into the report; unknown ones are null.
func arguments(n recording.LoaderNote) map[string]json.RawMessage {
	args := map[string]json.RawMessage{}
	body, err := json.Marshal(n.Arguments)
	if err != nil {
		return args
	}
	if json.Unmarshal(body, &args) != nil {
		return map[string]json.RawMessage{}
	}
	return args
}

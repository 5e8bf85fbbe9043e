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
	for _, id := range sorted(r.crews) {
		r.out.Loaders = append(r.out.Loaders, r.crews[id].row())
	}
}

// addTo adds the loaders of the group to those of the job.
func (g *group) addTo(crews map[uint16]*crew) {
	for _, k := range g.ranks {
		for _, l := range k.Loaders {
			b := crews[l.ID]
			if b == nil {
				b = newCrew(l.ID)
				crews[l.ID] = b
			}
			b.add(k, l)
		}
		k.addFetches(crews)
	}
}

// addFetches hands every fetch of the rank to the crew of its loader, if that is asked for.
func (k *rank) addFetches(rows map[uint16]*crew) {
	var b *crew
	last, own, counted := -1, false, false
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if int(f.Loader) != last {
			last = int(f.Loader)
			b, own = rows[f.Loader], k.builds(f.Loader)
			counted = !k.lossy(k.Loader(f.Loader))
		}
		if b != nil {
			b.addFetch(k, f, own, counted)
		}
	}
}

const (
	noBuilds = "no batch of this loader was seen being built"
	noCost   = "the builders' counters could not be read"
)

func (b *crew) row() Loader {
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
	l.Reads = b.reads(l.Bytes, l.Files, l.Requests)
	l.EpochStartSeconds = meanOf(b.starts, "no epoch start was recorded")
	l.HandoffSeconds = b.handoff.value("no fetch could be joined with its batch")
	if b.inMain && b.workers == 0 {
		l.HandoffSeconds = unit.NotSupported[float64]("the training process builds its batches itself: nothing is handed over")
	}
	b.stages(&l)
	return l
}

// AtLeast is the source of bytes that were read in any case: what came over sockets, mmap or FUSE is not in them.
const AtLeast = "read counters: a lower bound, blind to sockets, mmap and FUSE (grade C)"

// few bytes through read() are no sign that batches are read that way: imports, locks and pipes read as much.
const few = 4096

// bytes is what was read per batch, by the best source there is. The counters of read() alone tell it only where reads went that
// way: 20 MB that came through a socket or a memory map move them by a hundred bytes.
func (b *crew) bytes() (Ratio, string) {
	files, sockets := b.costs[load.CostRChar], b.received
	network, seen := b.costs[load.CostRequests].value("").Get()
	switch {
	case sockets.weight > 0 && files.weight > 0:
		return unit.Some(sockets.sum/sockets.weight + files.sum/files.weight), "socket diagnostics and read counters (grade B)"
	case sockets.weight > 0:
		return sockets.value(""), "socket diagnostics (grade B)"
	case files.weight > 0 && seen && network >= 0.5:
		return unit.None[float64]("batches come over the network, and what the builders' sockets received was not seen"), ""
	case files.weight > 0 && files.sum < few*files.weight:
		return unit.None[float64]("next to nothing came through read(), and its counters do not see sockets, mmap and FUSE"), ""
	case files.weight > 0:
		return files.value(""), AtLeast
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

package load

import (
	"errors"

	"github.com/datawait/datawait/probe/recording"
)

// workerStream is a worker process. Which rank it built for the survey finds out, and for which of its loaders is known when that is
// loaded.
type workerStream struct {
	source
	node        *Node
	declaration recording.Declaration
	rows        int    // of its costs
	first       int64  // begin of its first batch; Unknown without any
	owner       *Rank  // nil if nobody's
	claim       *claim // of the owner; nil for builders outside PyTorch

	notes  *recording.Notes
	stacks stackFold
	builds *Builds
	loader uint16 // that its batches name, recording.Unknown16 in a PyTorch worker
	bad    uint64
}

func newWorkerStream(node *Node, stream *recording.Stream, from source, index int) *workerStream {
	w := &workerStream{source: from, node: node, declaration: stream.Declaration, notes: &stream.Notes, first: Unknown, rows: 1024}
	if index >= 64 { // workers made anew every epoch: many streams, few batches each
		w.rows = 64
	}
	return w
}

var errEnough = errors.New("seen enough")

// survey looks for the first batch.
func (w *workerStream) survey() (Reading, error) {
	_, err := w.reader.Stream(w.id, func(records []recording.Record) error {
		for i := range records {
			if records[i].Kind() != recording.KindBatch {
				continue
			}
			b := records[i].Batch()
			if begin, _, ok := span(b.Begin, b.End); ok {
				w.first = begin
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return Reading{}, err
}

// load reads all that the worker built.
func (w *workerStream) load(room *Room) (Reading, error) {
	w.begin(0, room)
	reading, err := w.read(w.take)
	reading.Bad = w.bad
	return reading, err
}

// begin forgets what was read of the worker, and makes room for about so many batches.
func (w *workerStream) begin(batches int, room *Room) {
	w.bad, w.loader, w.stacks = 0, recording.Unknown16, stackFold{}
	w.builds = &Builds{PID: w.declaration.PID, Worker: int(Unknown), Costs: newSeries(CostFields, w.rows), Batches: room.batches(batches)}
	if t := w.declaration.Threads; t != nil {
		w.builds.Threads = *t
	}
}

func (w *workerStream) take(records []recording.Record) {
	for i := range records {
		rec := &records[i]
		switch rec.Kind() {
		case recording.KindBatch:
			if rec.Ref() != recording.Unknown16 {
				w.loader = rec.Ref()
			}
			if !w.builds.batch(rec) {
				w.bad++
			}
		case recording.KindCost:
			w.builds.cost(rec)
		case recording.KindIO:
			w.builds.io(rec)
		case recording.KindRead:
			if !w.builds.took(rec) {
				w.bad++
			}
		case recording.KindStack, recording.KindTransform, recording.KindSampler:
			if !w.stacks.take(rec) {
				w.bad++
			}
		}
	}
}

// batch of a training process that builds its batches itself, with a BATCH for each.
func (m *mainFold) batch(rec *recording.Record) bool {
	b := m.builds[rec.Ref()]
	if b == nil {
		b = m.fresh(rec.Ref())
	}
	return b.batch(rec)
}

func (m *mainFold) fresh(loader uint16) *Builds {
	b := &Builds{PID: m.rank.Declaration.PID, Own: true, Worker: int(Unknown), Costs: newSeries(CostFields, seriesCap), Batches: m.room.batches(0)}
	m.builds[loader] = b
	l := m.rank.loader(loader)
	l.Builds = append(l.Builds, b)
	return b
}

// own returns what a COST or IO of the training process speaks of. Without workers there is no BATCH: the last fetch of the loader
// built the batch, and its reading is made when its COST comes.
func (m *mainFold) own(loader uint16) *Builds {
	b := m.builds[loader]
	if b != nil && len(b.Batches) > 0 {
		return b
	}
	f := m.lastFetch(loader)
	if f == nil {
		return b
	}
	if b == nil {
		b = m.fresh(loader)
	}
	if b.built != f.Seq {
		b.built = f.Seq
		b.reading(f.Enter, f.Exit, nan)
	}
	return b
}

// lastFetch returns the loader's last fetch; it is at most a few records back.
func (m *mainFold) lastFetch(loader uint16) *Fetch {
	fetches := m.rank.Fetches
	for i := len(fetches) - 1; i >= max(0, len(fetches)-64); i-- {
		if fetches[i].Loader == loader {
			return &fetches[i]
		}
	}
	return nil
}

func (b *Builds) batch(rec *recording.Record) bool {
	var v recording.Batch
	rec.BatchInto(&v)
	begin, end, ok := span(v.Begin, v.End)
	if !ok {
		return false
	}
	sent := maybe(v.Sent)
	if sent < end {
		sent = Unknown
	}
	batch := another(&b.Batches)
	batch.Begin, batch.End, batch.Sent, batch.Index, batch.Epoch = begin, end, sent, v.Batch, v.Resumes
	if b.Worker < 0 && v.Worker != recording.Unknown32 {
		b.Worker = int(v.Worker)
	}
	b.reading(begin, end, reading32(v.Samples))
	return true
}

// reading opens a batch's costs, all but its wall time still missing.
func (b *Builds) reading(begin, end int64, samples float32) {
	costs := b.Costs.open(begin, end, 1)
	costs[CostWall], costs[CostSamples] = float32(float64(end-begin)/1e9), samples
}

// cost adds what the batches before it cost. One COST for several batches (a training process that builds them itself reads
// its counters seldom) is their mean, spread over as many of the readings as it covers.
func (b *Builds) cost(rec *recording.Record) {
	if b == nil || b.Costs.Len() == 0 {
		return
	}
	var v recording.Cost
	rec.CostInto(&v)
	n, tensors := 1.0, reading32(v.Tensors)
	if v.Flags&recording.CostSeveral != 0 {
		n, tensors = float64(min(max(v.Tensors, 1), 1<<20)), nan
	}
	per := func(x float32) float32 {
		if n == 1 {
			return x
		}
		return float32(float64(x) / n)
	}
	for i := range b.Costs.lastReadings(n) {
		s := b.Costs.from(i)
		s[CostCPU], s[CostProcessCPU], s[CostRunQueue] = per(seconds(v.CPU)), per(seconds(v.ProcessCPU)), per(seconds(v.RunQueue))
		s[CostCollate], s[CostBytes] = per(seconds(v.Collate)), per(reading(v.Bytes))
		s[CostFiles], s[CostRequests] = per(reading32(v.Files)), per(reading32(v.Requests))
		s[CostTensors] = tensors
		if s[CostCPU] == s[CostCPU] {
			s[CostMeasured] = s[CostWall]
		}
	}
}

// io adds the read counters of the batch before it.
func (b *Builds) io(rec *recording.Record) {
	if b == nil || b.Costs.Len() == 0 {
		return
	}
	var v recording.IO
	rec.IOInto(&v)
	s := b.Costs.from(0)
	s[CostRChar], s[CostReadBytes], s[CostSleeps] = reading(v.RChar), reading(v.ReadBytes), reading(v.Voluntary)
}

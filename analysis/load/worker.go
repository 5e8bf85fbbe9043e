package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// workerStream takes the records of a worker process; which loader it built for is known only at the end.
type workerStream struct {
	node        *Node
	declaration recording.Declaration
	builds      *Builds
	loader      uint16 // that its batches name, recording.Unknown16 in a PyTorch worker
	bad         *uint64
}

func newWorkerStream(node *Node, s *recording.Stream, index int, bad *uint64) *workerStream {
	rows := 1024
	if index >= 64 { // workers made anew every epoch: many streams, few batches each
		rows = 64
	}
	b := &Builds{PID: s.Declaration.PID, Worker: int(Unknown), Costs: newSeries(CostFields, rows)}
	if t := s.Declaration.Threads; t != nil {
		b.Threads = *t
	}
	return &workerStream{node: node, declaration: s.Declaration, builds: b, loader: recording.Unknown16, bad: bad}
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
				*w.bad++
			}
		case recording.KindCost:
			w.builds.cost(rec)
		case recording.KindIO:
			w.builds.io(rec)
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
	b := &Builds{PID: m.rank.Declaration.PID, Own: true, Worker: int(Unknown), Costs: newSeries(CostFields, seriesCap)}
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
	v := rec.Batch()
	begin, end, ok := span(v.Begin, v.End)
	if !ok {
		return false
	}
	batch := Batch{Begin: begin, End: end, Sent: maybe(v.Sent), Index: v.Batch, Epoch: v.Resumes}
	if batch.Sent != Unknown && batch.Sent < end {
		batch.Sent = Unknown
	}
	b.Batches = append(roomy(b.Batches), batch)
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
	v := rec.Cost()
	n, tensors := 1.0, reading32(v.Tensors)
	if v.Flags&recording.CostSeveral != 0 {
		n, tensors = float64(min(max(v.Tensors, 1), 1<<20)), nan
	}
	per := func(x float32) float32 { return float32(float64(x) / n) }
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
	v := rec.IO()
	s := b.Costs.from(0)
	s[CostRChar], s[CostReadBytes], s[CostInvoluntary] = reading(v.RChar), reading(v.ReadBytes), reading(v.Involuntary)
}

// Loader returns the rank's loader of that number, nil if it has none.
func (r *Rank) Loader(id uint16) *Loader { return r.byID[id] }

// loader returns the rank's loader of that number, made when first asked for.
func (r *Rank) loader(id uint16) *Loader {
	l := r.byID[id]
	if l == nil {
		if r.byID == nil {
			r.byID = map[uint16]*Loader{}
		}
		l = &Loader{ID: id}
		r.byID[id] = l
		r.Loaders = append(r.Loaders, l)
	}
	return l
}

// joinWorkers gives every worker stream to the loader it built for.
func (l *loading) joinWorkers() {
	claims := map[process][]claim{}
	for _, r := range l.job.Others {
		r.joinNotes()
		for _, rec := range r.workers {
			if t, ok := at(rec.T); ok {
				key := process{r.Node, int(rec.PID)}
				claims[key] = append(claims[key], claim{r, rec, t})
			}
		}
	}
	for _, w := range l.workers {
		if len(w.builds.Batches) == 0 {
			continue
		}
		loader, epoch := l.owner(w, claims[process{w.node, w.declaration.PID}])
		if loader == nil {
			l.job.Orphans += uint64(len(w.builds.Batches))
			continue
		}
		w.builds.Epoch = epoch
		for i := range w.builds.Batches {
			w.builds.Batches[i].Epoch += epoch
		}
		loader.Builds = append(loader.Builds, w.builds)
	}
	for _, r := range l.job.Others {
		slices.SortFunc(r.Loaders, func(a, b *Loader) int { return cmp.Compare(a.ID, b.ID) })
	}
}

// process is a pid on a node.
type process struct {
	node *Node
	pid  int
}

// claim is a WORKER record: this rank says whom the process builds for.
type claim struct {
	rank *Rank
	rec  recording.Worker
	t    int64
}

// owner finds the loader of a worker: that of the last claim made before its first batch, for pids come again. Builders outside
// PyTorch are claimed by nobody; their declaration names the parent, and their batches the loader.
func (l *loading) owner(w *workerStream, claims []claim) (*Loader, uint32) {
	first := w.builds.Batches[0].Begin
	var best *claim
	for i := range claims {
		c := &claims[i]
		if best == nil || c.t <= first && (best.t > first || c.t >= best.t) {
			best = c
		}
	}
	if best != nil {
		if best.rec.Worker < 1<<16 {
			w.builds.Worker = int(best.rec.Worker)
		}
		return best.rank.loader(best.rec.Ref), best.rec.Epoch
	}
	for _, r := range l.job.Others {
		if r.Node != w.node || r.Declaration.PID != w.declaration.Parent || w.declaration.Parent == 0 {
			continue
		}
		if w.loader != recording.Unknown16 {
			return r.loader(w.loader), 0
		}
		if watched := r.watched(); watched != nil {
			return watched, 0
		}
	}
	return nil, 0
}

// watched returns the rank's only loader that is not PyTorch's.
func (r *Rank) watched() (only *Loader) {
	for _, l := range r.Loaders {
		if l.Note.Kind != "watch" {
			continue
		}
		if only != nil {
			return nil
		}
		only = l
	}
	return only
}

// joinNotes gathers what is known of each loader of the rank.
func (r *Rank) joinNotes() {
	for _, n := range r.Notes.Loaders {
		l := r.loader(n.Loader)
		l.Note, l.Noted = n, true
	}
	for _, s := range r.Notes.Sums {
		l := r.loader(s.Loader)
		l.Sums, l.Summed = s, true
	}
	var l *Loader
	for i := range r.Fetches {
		f := &r.Fetches[i]
		if l == nil || l.ID != f.Loader {
			l = r.loader(f.Loader)
		}
		if f.Delivered() && !f.Test() && !f.Upstream() {
			l.Fetches++
		}
	}
	for i, it := range r.Iterators {
		l := r.loader(it.Loader)
		l.Iterators = append(l.Iterators, i)
	}
	for _, s := range r.solos {
		l := r.loader(s.Ref)
		l.Solos = append(l.Solos, s)
	}
	slices.SortFunc(r.Loaders, func(a, b *Loader) int { return cmp.Compare(a.ID, b.ID) })
}

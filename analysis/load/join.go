package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

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
		l.joinThreads(r)
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

// joinThreads gives the batches that threads of a training process built to the loader it watches.
func (l *loading) joinThreads(r *Rank) {
	nobody := r.byID[recording.Unknown16]
	if nobody == nil || nobody.Fetches > 0 {
		return
	}
	delete(r.byID, recording.Unknown16)
	r.Loaders = slices.DeleteFunc(r.Loaders, func(l *Loader) bool { return l == nobody })
	watched := r.watched()
	for _, b := range nobody.Builds {
		if watched == nil {
			l.job.Orphans += uint64(len(b.Batches))
			continue
		}
		b.Own = false // the training thread does not wait while another builds
		watched.Builds = append(watched.Builds, b)
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
	parent := l.parent(w)
	if parent == nil {
		return nil, 0
	}
	if w.loader != recording.Unknown16 {
		return parent.loader(w.loader), 0
	}
	return parent.watched(), 0
}

// parent finds the rank whose pid a builder names: of the programs that process was in turn, the last that began before the
// builder.
func (l *loading) parent(w *workerStream) (best *Rank) {
	before := func(r *Rank) bool { return r.Declaration.Opened <= w.declaration.Opened }
	for _, r := range l.job.Others {
		if r.Node != w.node || r.Declaration.PID != w.declaration.Parent || w.declaration.Parent == 0 {
			continue
		}
		if best == nil || before(r) && (!before(best) || r.Declaration.Opened > best.Declaration.Opened) {
			best = r
		}
	}
	if best == nil {
		return l.self(w)
	}
	return best
}

// self finds the rank that a builder became: a process whose threads built before it first fetched.
func (l *loading) self(w *workerStream) *Rank {
	for _, r := range l.job.Others {
		if r.Node == w.node && r.Declaration.PID == w.declaration.PID && r.Declaration.StartTicks == w.declaration.StartTicks {
			return r
		}
	}
	return nil
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
		if r.byID[s.Loader] == nil && s.Fetches.Or(0) == 0 {
			continue // batches that name no loader are counted in the last one's place
		}
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

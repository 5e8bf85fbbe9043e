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

// joinWorkers finds the rank that every worker built for.
func (s *survey) joinWorkers() {
	claims := map[process][]claim{}
	for _, r := range s.mains {
		for _, rec := range r.claims {
			if t, ok := at(rec.T); ok {
				key := process{r.Node, int(rec.PID)}
				claims[key] = append(claims[key], claim{r, rec, t})
			}
		}
	}
	for _, w := range s.workers {
		if w.first == Unknown {
			continue
		}
		w.claim = latestClaim(claims[process{w.node, w.declaration.PID}], w.first)
		if w.claim != nil {
			w.owner = w.claim.rank
		} else {
			w.owner = s.parent(w)
		}
		if w.owner != nil {
			w.owner.workers = append(w.owner.workers, w)
		}
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

// latestClaim returns the last claim made before a worker's first batch, for pids come again; nil without any. Builders outside
// PyTorch are claimed by nobody.
func latestClaim(claims []claim, first int64) (best *claim) {
	for i := range claims {
		c := &claims[i]
		if best == nil || c.t <= first && (best.t > first || c.t >= best.t) {
			best = c
		}
	}
	return best
}

// parent finds the rank whose pid a builder names: of the programs that process was in turn, the last that began before the
// builder.
func (s *survey) parent(w *workerStream) (best *Rank) {
	before := func(r *Rank) bool { return r.Declaration.Opened <= w.declaration.Opened }
	for _, r := range s.mains {
		if r.Node != w.node || r.Declaration.PID != w.declaration.Parent || w.declaration.Parent == 0 {
			continue
		}
		if best == nil || before(r) && (!before(best) || r.Declaration.Opened > best.Declaration.Opened) {
			best = r
		}
	}
	if best == nil {
		return s.self(w)
	}
	return best
}

// self finds the rank that a builder became: a process whose threads built before it first fetched.
func (s *survey) self(w *workerStream) *Rank {
	for _, r := range s.mains {
		if r.Node == w.node && r.Declaration.PID == w.declaration.PID && r.Declaration.StartTicks == w.declaration.StartTicks {
			return r
		}
	}
	return nil
}

// join gives what a worker built to the loader that claimed it, else to the one its batches name, else to the only watched one. It
// returns how many batches belong to none.
func (r *Rank) join(w *workerStream) (orphans uint64) {
	b := w.builds
	if len(b.Batches) == 0 {
		return 0
	}
	var l *Loader
	switch {
	case w.claim != nil:
		l = r.loader(w.claim.rec.Ref)
		if n := w.claim.rec.Worker; n < 1<<16 {
			b.Worker = int(n)
		}
		b.Epoch = w.claim.rec.Epoch
		for i := range b.Batches {
			b.Batches[i].Epoch += b.Epoch
		}
		for i := range b.Reads.Readings {
			b.Reads.Readings[i].Epoch += b.Epoch
		}
	case w.loader != recording.Unknown16:
		l = r.loader(w.loader)
	default:
		l = r.watched()
	}
	if l == nil {
		return uint64(len(b.Batches))
	}
	l.Builds = append(l.Builds, b)
	t := w.stacks.tree(recording.Unknown16, w.notes)
	w.stacks.during(t, b.Batches, w.notes)
	l.look(identity{processOf(w.declaration), w.declaration.Opened}, t)
	return 0
}

// joinThreads gives the batches that threads of a training process built to the loader it watches, and returns how many belong to
// none.
func (r *Rank) joinThreads() (orphans uint64) {
	nobody := r.byID[recording.Unknown16]
	if nobody == nil || nobody.Fetches > 0 {
		return 0
	}
	delete(r.byID, recording.Unknown16)
	r.Loaders = slices.DeleteFunc(r.Loaders, func(l *Loader) bool { return l == nobody })
	watched := r.watched()
	for _, b := range nobody.Builds {
		if watched == nil {
			orphans += uint64(len(b.Batches))
			continue
		}
		b.Own = false // the training thread does not wait while another builds
		watched.Builds = append(watched.Builds, b)
	}
	return orphans
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

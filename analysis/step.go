package analysis

import (
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// step is one step of a rank: from the end of the step before it to its own end.
type step struct {
	begin, end int64
	cpu        int64 // of the training thread; load.Unknown if not read
	wait       int64 // inside next() of training loaders
	idle       int64 // of wait: the device had nothing to run, where its clock says so
	blind      int64 // of wait: no device clock
	fetches    int   // batches delivered to training
	opens      bool  // an iterator was made, or gave its first or no batch
	warm       bool  // queues are still filling
	made       int64 // making iterators
	aside      int64 // waiting for loaders that do not train
	validates  bool  // a loader that does not train, or a validation loop, took part
	saves      bool  // a checkpoint did
	breaks     bool  // validation, a checkpoint or a loader that does not train took part
	gap        bool  // records are missing in it
	live       bool
}

// counts reports whether the step stands for all others.
func (s *step) counts() bool {
	return s.live && !s.opens && !s.warm && !s.breaks && !s.gap && s.end > s.begin
}

// walk visits every step of the rank in order, and every training fetch of it first. A rank's first boundary opens its first step:
// what came before may be the tail of something that was not recorded.
func (k *rank) walk(visitFetch func(*step, *load.Fetch), visit func(*step)) {
	w := walker{rank: k, loaders: map[uint16]*progress{}, visitFetch: visitFetch}
	if k.byFetch {
		w.byFetch(visit)
		return
	}
	var s step // one for all: visitors keep no pointer to it
	for i := range k.Steps {
		end := &k.Steps[i]
		s = step{begin: w.last, end: end.End, cpu: load.Unknown}
		w.fill(&s)
		if i > 0 {
			before := &k.Steps[i-1]
			s.gap = s.gap || end.Number != before.Number+1
			if end.CPU != load.Unknown && before.CPU != load.Unknown && end.CPU >= before.CPU {
				s.cpu = end.CPU - before.CPU
			}
			visit(&s)
		}
		w.last = end.End
	}
}

// byFetch walks steps that are fetches: each ends where the primary loader delivered a batch.
func (w *walker) byFetch(visit func(*step)) {
	var s step
	first := true
	for i := range w.rank.Fetches {
		f := &w.rank.Fetches[i]
		if f.Loader != w.rank.primary || !w.rank.training(f) || !f.Delivered() {
			continue
		}
		s = step{begin: w.last, end: f.Exit, cpu: load.Unknown}
		w.fill(&s)
		if !first {
			visit(&s)
		}
		first = false
		w.last = f.Exit
	}
}

// walker carries the cursors of a walk.
type walker struct {
	rank       *rank
	last       int64 // end of the step before
	fetch      int
	iterator   int
	mark       int
	live       int
	gap        int
	loaders    map[uint16]*progress
	recent     *progress // of loader recentID
	recentID   uint16
	visitFetch func(*step, *load.Fetch)
}

// progress is how far a loader got.
type progress struct {
	delivered int
	epoch     uint32
	inEpoch   int
	known     bool
	workers   int
	length    int // batches per epoch; 0 = unknown
}

// fill gives the step everything that began in it.
func (w *walker) fill(s *step) {
	k := w.rank
	for w.live < len(k.live) && k.live[w.live].end <= s.begin {
		w.live++
	}
	s.live = w.live < len(k.live) && k.live[w.live].begin <= s.begin && s.end <= k.live[w.live].end
	s.warm = s.begin < k.cold.until
	for w.gap < len(k.Gaps) && k.Gaps[w.gap].End <= s.begin {
		w.gap++
	}
	s.gap = w.gap < len(k.Gaps) && k.Gaps[w.gap].Begin < s.end
	for ; w.iterator < len(k.Iterators) && k.Iterators[w.iterator].Begin < s.end; w.iterator++ {
		it := &k.Iterators[w.iterator]
		p := w.progress(it.Loader)
		if it.Workers != recording.Unknown32 {
			p.workers = int(min(it.Workers, 1<<16))
		}
		if it.Length != recording.Unknown32 {
			p.length = int(it.Length)
		}
		s.opens = true
		s.made += max(0, min(it.End, s.end)-max(it.Begin, s.begin))
	}
	for ; w.fetch < len(k.Fetches) && k.Fetches[w.fetch].Enter < s.end; w.fetch++ {
		w.take(s, &k.Fetches[w.fetch])
	}
	for w.mark < len(k.Marks) && k.Marks[w.mark].Begin < s.end {
		m := &k.Marks[w.mark]
		if m.Code == recording.MarkValidation || m.Code == recording.MarkCheckpoint {
			s.breaks = true
			s.validates = s.validates || m.Code == recording.MarkValidation
			s.saves = s.saves || m.Code == recording.MarkCheckpoint
			if m.End > s.end {
				return // it reaches into the next step
			}
		}
		w.mark++
	}
}

func (w *walker) take(s *step, f *load.Fetch) {
	k := w.rank
	switch {
	case f.Upstream():
		return
	case f.Test():
		return // never live; a walk need not look closer
	case !k.training(f):
		s.breaks, s.validates = true, true
		s.aside += max(0, min(f.Exit, s.end)-max(f.Enter, s.begin))
		return
	}
	wait := min(f.Exit, s.end) - max(f.Enter, s.begin)
	if wait > 0 {
		s.wait += wait
		if f.Idle == load.Unknown {
			s.blind += wait
		} else {
			s.idle += min(f.Idle, wait)
		}
	}
	if !f.Delivered() {
		s.opens = true
		return
	}
	s.fetches++
	w.progress(f.Loader).deliver(s, f)
	if w.visitFetch != nil {
		w.visitFetch(s, f)
	}
}

// deliver says what the fetch means for the steadiness of the step.
//
// The first 2·W fetches of a loader find queues that are still filling. A later iterator asks all its workers at once: one
// wait, which belongs to the epoch start, is followed by W − 1 batches that are simply there. That first round is
// left out too, or a loader that waits once every W fetches would look better the shorter its epochs are; an epoch of less
// than three rounds keeps it, for else little would be left to judge.
func (p *progress) deliver(s *step, f *load.Fetch) {
	if !p.known || f.Epoch != p.epoch {
		p.epoch, p.inEpoch, p.known = f.Epoch, 0, true
		if p.delivered > 0 || f.Batch == 0 {
			s.opens = true
		}
	}
	s.opens = s.opens || f.Is(recording.FetchFirst)
	long := p.length == 0 || p.length >= 3*p.workers
	if p.delivered < 2*p.workers || long && p.inEpoch < p.workers {
		s.warm = true
	}
	p.delivered++
	p.inEpoch++
}

func (w *walker) progress(loader uint16) *progress {
	if w.recent != nil && w.recentID == loader {
		return w.recent
	}
	p := w.loaders[loader]
	if p == nil {
		workers, _ := w.rank.workers(loader) // none known: none are waited for to fill their queues
		p = &progress{workers: workers}
		w.loaders[loader] = p
	}
	w.recent, w.recentID = p, loader
	return p
}

// workers returns how many processes built for a loader: by its first iterator, else by its arguments, else by those seen. It is
// not known where a watched loader was given no number and no builder was seen.
func (k *rank) workers(loader uint16) (n int, known bool) {
	l := k.Loader(loader)
	if l == nil {
		return 0, false
	}
	if len(l.Iterators) > 0 {
		if n := k.Iterators[l.Iterators[0]].Workers; n != recording.Unknown32 {
			return int(min(n, 1<<16)), true
		}
	}
	if n, ok := l.Note.Arguments.Workers.Get(); ok && n >= 0 && n < 1<<16 {
		return int(n), true
	}
	n = l.Workers()
	return n, n > 0
}

// builds reports whether the training process builds the batches of a loader itself.
func (k *rank) builds(loader uint16) bool {
	l := k.Loader(loader)
	n, known := k.workers(loader)
	return l != nil && l.Note.Kind != "watch" && known && n == 0
}

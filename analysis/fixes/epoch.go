package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// persistentWorkers keeps the workers from one epoch to the next: their start goes away, the first build does not (F16–F19,
// scenario S14). An IterableDataset makes its iterator anew and fills its buffer again.
func persistentWorkers(j *job, s state) proposal {
	p := proposal{title: "keep workers from epoch to epoch", effort: oneArgument}
	on, ok := j.p.Args.Persistent.Get()
	switch {
	case !j.p.Epoch.Seconds.IsKnown():
		return proposal{}
	case j.p.Args.Unseen:
		p.zero = unseen
		return p
	case s.law.Workers == 0:
		p.zero = "there are no workers to keep"
		return p
	case ok && on:
		return proposal{}
	case j.batches == 0:
		p.how = withArguments(j, func(a *arguments) { a.persistent = true })
		p.unpriced = fmt.Sprintf("an epoch start takes %s, but the length of an epoch is not known", phrase.Duration(s.epochStart()))
		return p
	}
	p.how = withArguments(j, func(a *arguments) { a.persistent = true })
	p.needs = "the workers' memory between epochs; a dataset that is changed between epochs must tell its workers"
	p.assumes = []string{"training runs for more than a few epochs: the first start stays"}
	p.zero = fmt.Sprintf("starting workers takes %s of an epoch of %s", phrase.Duration(s.start), phrase.Duration(j.wall))
	kept := j.keepsBuffer()
	p.change = func(s *state) { s.start = 0 }
	if kept {
		p.change = func(s *state) { s.start, s.extra = 0, s.extra/2 }
		p.best = func(s *state) { s.start, s.extra = 0, 0 }
		p.worst = func(s *state) { s.start = 0 }
	}
	return p
}

// keepsBuffer says whether what the first batch of an epoch takes longer may be opening the dataset, which kept workers do once.
func (j *job) keepsBuffer() bool {
	iterable, ok := j.p.Args.Iterable.Get()
	return ok && !iterable && j.now.extra > 0
}

// cheaperStart makes a worker's start cheaper: forkserver with preloaded imports 4 → 0.4 s per worker, a sample list taken
// out of the pickled dataset 30 → 6 s (F20).
func cheaperStart(j *job, s state) proposal {
	on, _ := j.p.Args.Persistent.Get()
	if s.law.Workers == 0 || on || j.batches == 0 || s.start <= 0 {
		return proposal{}
	}
	p := proposal{
		title: "start workers faster", effort: fewLines,
		how:     "do less in worker_init_fn and in the dataset's first access: open files lazily, keep one copy on disk of what every worker loads",
		assumes: []string{"half of what a worker does before its first batch can go (interval: a tenth to nine tenths)"},
	}
	fast, slow, mid := 0.1, 0.9, 0.5
	if method := j.p.Args.StartMethod.Or("fork"); method != "fork" {
		p.how = `multiprocessing_context="forkserver" with set_forkserver_preload([...]) of what workers import; keep lists of samples out of the pickled dataset (arrays, memory maps)`
		p.assumes = []string{"imports and unpickling are most of a worker's start: 85 % of it go (interval: 40 to 90 %; F20)"}
		slow, mid = 0.6, 0.15
	}
	p.change = func(s *state) { s.start *= mid }
	p.best = func(s *state) { s.start *= fast }
	p.worst = func(s *state) { s.start *= slow }
	return p
}

// smallerShuffleBuffer fills less before the first batch (F23: 90 s at every epoch; scenario S16).
func smallerShuffleBuffer(j *job, s state) proposal {
	iterable, ok := j.p.Args.Iterable.Get()
	if !ok || !iterable || j.batches == 0 || s.extra <= 0 {
		return proposal{}
	}
	return proposal{
		title: "a smaller or kept shuffle buffer", effort: oneArgument,
		how:     "shuffle shards and use a smaller sample buffer, or start yielding before the buffer is full",
		assumes: []string{"what the first batch takes longer than others is filling a buffer, and a quarter of it is enough (interval: none to three quarters)"},
		change:  func(s *state) { s.extra /= 4 },
		best:    func(s *state) { s.extra = 0 },
		worst:   func(s *state) { s.extra *= 0.75 },
	}
}

package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/unit"
)

// moreWorkers proposes the smallest W with L/W ≤ max(C, shared, B/K) (F01–F05). It stops where cores or a shared store bind,
// and at a few workers per core: 48 readers per GPU broke an object store, 104 on 23 cores froze (F70).
func moreWorkers(j *job, s state) proposal {
	p := proposal{title: "more workers", effort: oneArgument}
	l := s.law
	if st := j.p.Around.Stream; st.Starved() {
		p.zero = fmt.Sprintf("%d of %s have nothing to read already", st.Workers-st.Delivering, phrase.Workers(st.Workers))
		return p
	}
	if !j.model.Known.Build {
		p.zero = "the time to build a batch was not seen, so nothing says that workers are short"
		return p
	}
	enough, ok := j.model.Enough(l)
	if !ok {
		p.zero = "a batch takes no time to build"
		return p
	}
	target := min(enough, l.WorkerLimit())
	if target <= l.Workers {
		p.zero = j.enoughWorkers(s, enough)
		return p
	}
	p.title = fmt.Sprintf("%s instead of %s", phrase.Workers(target), count(l.Workers))
	p.how = withArguments(j, func(a *arguments) { a.workers = target })
	p.needs, p.sets.Workers = j.workerMemory(target), unit.Some(target)
	p.noRoom = j.roomFor(target, j.p.Args.Prefetch.Or(loader.DefaultPrefetch)) != ""
	if target < enough {
		p.assumes = append(p.assumes, fmt.Sprintf("%d workers would be enough; more than 4 for each core that is free are not proposed", enough))
	}
	if !j.model.Known.Shared && l.Off > 0 {
		p.assumes = append(p.assumes, "what the workers wait for serves several of them as fast as one (not measured: the interval reaches to the other case)")
	}
	p.change = func(s *state) { s.setWorkers(target) }
	return p
}

// unseen is why nothing is said of the workers of a watched loader that nobody described.
const unseen = "how many workers build was not seen; watch() takes it as an argument"

// enoughWorkers says why no worker is added.
func (j *job) enoughWorkers(s state, enough int) string {
	l := s.law
	switch b := l.Binding(); {
	case b == loader.ByWorkers && enough > l.Workers:
		return fmt.Sprintf("%s are %d per usable core already; %d would be needed", phrase.Workers(l.Workers), l.WorkerLimit()/max(1, int(l.WorkerCores)), enough)
	case b != loader.ByCompute && b != loader.ByMain:
		return j.binds(s)
	case l.Workers >= 2*enough && s.start > 0:
		longer := s.start * (1 - float64(enough)/float64(l.Workers))
		return fmt.Sprintf("%s %s up; %d only lengthen every epoch start, by %s", phrase.Workers(enough), phrase.Verb(enough, "keeps", "keep"), l.Workers, phrase.Duration(longer))
	case l.Workers > enough:
		return fmt.Sprintf("%s would keep up already", phrase.Workers(enough))
	}
	return fmt.Sprintf("%s already %s up with the device", phrase.Workers(l.Workers), phrase.Verb(l.Workers, "keeps", "keep"))
}

// fewerWorkers removes workers that only cost an epoch start (F04, F05, scenario S02 at W = 16).
func fewerWorkers(j *job, s state) proposal {
	enough, ok := j.model.Enough(s.law)
	if !ok || !j.model.Known.Build || s.law.Workers < 2*enough {
		return proposal{}
	}
	return proposal{
		title: fmt.Sprintf("%s instead of %d", phrase.Workers(enough), s.law.Workers), effort: oneArgument,
		how:     withArguments(j, func(a *arguments) { a.workers = enough }),
		sets:    LoaderArguments{Workers: unit.Some(enough)},
		assumes: []string{"starting workers takes time in proportion to their number"},
		change:  func(s *state) { s.setWorkers(enough) },
		worst:   func(s *state) { start := s.start; s.setWorkers(enough); s.start = start },
	}
}

// setWorkers changes W. Starting workers takes time in proportion to their number: 33 s without, 80 s with four, 136 s with
// eight (F04).
func (s *state) setWorkers(w int) {
	if s.law.Workers > 0 {
		s.start *= float64(w) / float64(s.law.Workers)
	}
	s.law.Workers = w
}

// withArguments writes the loader's call with some arguments changed.
func withArguments(j *job, change func(*arguments)) string {
	a := given(j.p.Args)
	change(&a)
	return a.call()
}

// workerMemory says what more workers take.
func (j *job) workerMemory(w int) string {
	bytes, ok := j.p.Batch.Bytes.Get()
	if !ok || bytes <= 0 {
		return "memory for the dataset object in every worker, /dev/shm for the queued batches"
	}
	queued := float64(w*j.p.Args.Prefetch.Or(loader.DefaultPrefetch)) * bytes
	return fmt.Sprintf("memory for the dataset object in every worker, %.2g MB of /dev/shm for the queued batches%s", queued/1e6, j.roomFor(w, j.p.Args.Prefetch.Or(loader.DefaultPrefetch)))
}

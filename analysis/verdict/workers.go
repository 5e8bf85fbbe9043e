package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// tooFewWorkers: builds are what the step waits for, a modest number of workers would keep up, and they have what they need:
// builds wait rather than compute, or cores are spare (F01–F03, F05; scenarios S01, S02, S05 at W = 1).
func tooFewWorkers(s *subject) opinion {
	if !s.waits() {
		return opinion{}
	}
	enough, ok := s.m.Enough(s.l)
	limit := s.l.WorkerLimit()
	switch b := s.l.Binding(); {
	case s.p.Around.Stream.Starved():
		return drop("workers that are there already have nothing to read")
	case !s.m.Known.Build || !ok:
		return drop("the time to build a batch was not seen")
	case b == loader.ByShared:
		return drop("builds hold each other up: another one only queues")
	case b == loader.ByCores:
		return drop(fmt.Sprintf("the CPU time of builds keeps %s full", phrase.Cores(min(s.l.WorkerCores, s.l.JobCores))))
	case b != loader.ByWorkers && s.l.Workers > 0:
		return drop(fmt.Sprintf("%s build a step's batches in %s", phrase.Workers(s.l.Workers), phrase.Duration(s.t.Workers)))
	case enough > limit:
		return drop(fmt.Sprintf("%d workers would be needed, more than 4 for each core that is free", enough))
	case !s.offCPU() && !s.spareCores():
		return drop(fmt.Sprintf("the CPU time of builds takes %s of a step of %s: the cores have no room for another", phrase.Duration(s.t.Cores), phrase.Duration(s.step)))
	}
	return find(Verdict{
		Title: s.small() + s.fewTitle(enough), Confidence: s.sure(s.fewConfidence()),
		Evidence: s.build(s.wait()).
			value("workers_enough", float64(enough), "count", byLaw).num("usable_cores", s.p.Host.Usable, "cores", byHost),
		FalsifiedBy: fmt.Sprintf("a run with num_workers=%d whose step is no shorter", enough),
	}, s.gain)
}

func (s *subject) fewTitle(enough int) string {
	if s.l.Workers == 0 {
		return fmt.Sprintf("the training process builds every batch itself: %s of the step is lost to it", phrase.Percent(s.gain))
	}
	_, build := s.measured()
	return fmt.Sprintf("%s %s too few (%d would do): a batch takes %s to build and one is needed every %s; %s of the step is lost to it",
		phrase.Workers(s.l.Workers), phrase.Verb(s.l.Workers, "is", "are"), enough, phrase.Duration(build),
		phrase.Duration(s.l.Compute/s.l.Fetches), phrase.Percent(s.gain))
}

// fewConfidence: without workers there is no doubt; with some, what they wait for may serve one at a time.
func (s *subject) fewConfidence() float64 {
	switch {
	case s.l.Workers == 0:
		return 0.95
	case s.offCPU() && !s.m.Known.Shared:
		return 0.7
	}
	return 0.9
}

// small begins the title of a finding that is real and not worth alarm (scenario S26, marginal variant).
func (s *subject) small() string {
	if s.gain < Small {
		return "small: "
	}
	return ""
}

package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// starvedWorkers: some workers of an iterated dataset never give a batch: it has fewer shards than workers (F48).
func starvedWorkers(s *subject) opinion {
	st := s.p.Around.Stream
	switch {
	case !st.Starved():
		return opinion{}
	case !s.waits():
		return drop(fmt.Sprintf("%d of %s give batches, and they keep up", st.Delivering, phrase.Workers(st.Workers)))
	}
	return find(Verdict{
		Title: fmt.Sprintf("%s%d of %s have nothing to read: the dataset has fewer shards than workers; %s of the step is lost to waiting", s.small(),
			st.Workers-st.Delivering, phrase.Workers(st.Workers), phrase.Percent(s.gain)),
		Confidence:  s.sure(0.9),
		Evidence:    s.build(s.wait()).value("workers_that_give_batches", float64(st.Delivering), "count", byBuilds),
		FalsifiedBy: fmt.Sprintf("a run with %d shards or more whose step is no shorter", st.Workers),
	}, s.gain)
}

// duplicateData: an epoch has every sample several times, because workers do not divide the stream among them (F49; scenario S18). It looks
// like a fast loader.
func duplicateData(s *subject) opinion {
	st := s.p.Around.Stream
	times := st.Repeats()
	if times <= 1 {
		return opinion{}
	}
	return find(Verdict{
		Title: fmt.Sprintf("an epoch has %d batches where the dataset declares %d: every one of %s seems to read the whole stream, so each sample comes %.0f times",
			st.Delivered, st.Declared, phrase.Workers(st.Workers), times),
		Confidence: 0.85,
		Evidence: evidence{}.value("batches_per_epoch", float64(st.Delivered), "count", bySteps).value("batches_declared", float64(st.Declared), "count", bySteps).
			value("workers", float64(st.Workers), "count", bySteps),
		FalsifiedBy: "the samples of one epoch, counted by their keys, of which none comes twice",
	}, 1-1/times)
}

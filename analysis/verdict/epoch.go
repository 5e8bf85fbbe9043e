package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// epochStart: the gap before the first batch, every epoch, takes a part of the wall time worth having (F16–F23; scenarios S14,
// S16). A look at steps in the middle of an epoch sees nothing of it.
func epochStart(s *subject) opinion {
	start, ok := s.p.Epoch.Seconds.Get()
	if !ok {
		return opinion{}
	}
	share, ok := s.startShare()
	if !ok {
		return drop("only one epoch start was seen, and how long an epoch is is not known")
	}
	if share < Notable {
		return drop(fmt.Sprintf("epoch starts take %s of the wall time", phrase.Percent(share)))
	}
	e := evidence{}.est("epoch_start_seconds", s.p.Epoch.Seconds, "seconds", bySteps).value("epoch_start_share", share, "ratio", bySteps).
		num("worker_start_seconds", s.p.Epoch.WorkerStart, "seconds", byBuilds).num("first_build_seconds", s.p.Epoch.FirstBuild, "seconds", byBuilds).
		value("epochs", float64(s.p.Epoch.Epochs), "count", bySteps)
	base := 0.9
	if s.p.Epoch.Epochs < 2 {
		base = 0.6
	}
	return find(Verdict{
		Title:       fmt.Sprintf("every epoch starts with %s without a batch%s: %s of the wall time", phrase.Duration(start.Value), s.startCause(start.Value), phrase.Percent(share)),
		Confidence:  base,
		Evidence:    e,
		FalsifiedBy: "a run with persistent_workers=True (and a smaller shuffle buffer) whose epochs are no shorter",
	}, share)
}

// startShare is the part of the wall time that epoch starts take. A single start in a short recording says nothing of a long
// run unless the length of an epoch is known.
func (s *subject) startShare() (float64, bool) {
	n, ok := s.p.Epoch.Batches.Get()
	if ok && n > 0 && s.step > 0 {
		start := s.p.Epoch.Seconds.Or(none).Value
		return start / (start + float64(n)/s.l.Fetches*s.step), true
	}
	share, ok := s.p.Epoch.Share.Get()
	return share, ok && s.p.Epoch.Epochs > 1
}

// startCause says what most of the gap is.
func (s *subject) startCause(start float64) string {
	if w, ok := s.p.Epoch.WorkerStart.Get(); ok && w > 0.5*start {
		return ", most of it starting workers"
	}
	if f, ok := s.p.Epoch.FirstBuild.Get(); ok && f > 0.5*start && f > 3*s.l.Build() && s.m.Known.Build {
		return ", most of it filling a buffer or opening the dataset"
	}
	return ""
}

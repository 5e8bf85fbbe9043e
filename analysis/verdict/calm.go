package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// computeBound: the step is hardly longer than with its batches in memory, and the device works through it (F73, scenario S26).
// Where no device was seen the cached-data test alone must say so.
func computeBound(s *subject) opinion {
	if !s.judge {
		return opinion{}
	}
	if s.gain > Notable {
		return drop(fmt.Sprintf("a step would be %s shorter with its batches in memory", phrase.Percent(s.gain)))
	}
	busy, ok := s.busy()
	switch {
	case s.handedOver() >= Heavy:
		return drop(fmt.Sprintf("handing batches over takes %s of the step", phrase.Percent(s.handedOver())))
	case !ok && !s.m.Known.Cached:
		return drop("neither a device nor the cached-data test says what a step does without loading")
	case ok && busy < 0.7*s.l.Compute:
		return drop(fmt.Sprintf("the device works for %s of the %s that a step takes without loading", phrase.Duration(busy), phrase.Duration(s.l.Compute)))
	}
	base := 0.95
	if !ok {
		base = 0.75
	}
	loader, hand := "no faster loader helps", s.share(s.handoff())
	switch {
	case s.gain >= Least:
		loader = fmt.Sprintf("a faster loader wins %s at most", phrase.Percent(s.gain))
	case hand >= Least:
		loader = fmt.Sprintf("handing them over takes %s of it, and a faster loader hands over no faster", phrase.Percent(hand))
	}
	o := find(Verdict{
		Title:      fmt.Sprintf("the GPU sets the pace: a step takes %s, %s with its batches in memory; %s", phrase.Duration(s.step), phrase.Duration(s.l.Compute), loader),
		Confidence: s.sure(base), Evidence: s.device(s.wait()),
		FalsifiedBy: fmt.Sprintf("a step on batches in memory that is more than %s shorter", phrase.Percent(Notable+hand)),
	}, s.share(s.l.Compute))
	o.weight = Notable // after every problem, before what is small
	return o
}

// nothingElse is said where no signature matched.
func (s *subject) nothingElse(found []Verdict) []Verdict {
	if !s.f.Steady || !s.judge {
		return []Verdict{s.notSteady()}
	}
	for _, v := range found {
		if v.ID != MetricUntrusted {
			return nil
		}
	}
	if s.waits() {
		return []Verdict{{
			ID: DataWait, Title: fmt.Sprintf("%s%s of the step waits for data; what makes it wait was not seen", s.small(), phrase.Percent(s.gain)),
			Confidence: s.sure(0.6), Share: known(s.gain), Evidence: s.build(s.wait()),
			FalsifiedBy: "a step on batches in memory that is no shorter",
		}}
	}
	return []Verdict{{
		ID: Healthy, Title: fmt.Sprintf("nothing stands out: %s of the step waits for data", phrase.Percent(s.gain)), Confidence: s.sure(0.7), Share: known(s.gain), Evidence: s.device(s.wait()),
		FalsifiedBy: "a step on batches in memory that is more than 5 % shorter",
	}}
}

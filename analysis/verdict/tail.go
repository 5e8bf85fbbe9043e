package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// veryUneven is the coefficient of variation from which builds are called uneven: a few that take many times as long.
const veryUneven = 0.5

// slowTail: there are workers enough for builds of average length, and the step waits all the same, behind a slow one whose batch comes next
// (F50, F38). More workers or a faster disk on average change little.
func slowTail(s *subject) opinion {
	cv, ok := s.p.Batch.CV.Get()
	if !s.waits() || !s.m.Known.Build || !ok || s.l.Workers < 2 {
		return opinion{}
	}
	mean := max(s.t.Workers, s.t.Cores, s.t.Shared)
	switch {
	case cv < veryUneven:
		return drop(fmt.Sprintf("builds are even: they vary by %s of their mean", phrase.Percent(cv)))
	case mean > s.l.Compute+s.handoff():
		return drop(fmt.Sprintf("builds vary, and are too slow on average: %s for a step's batches", phrase.Duration(mean)))
	case s.l.Binding() != loader.ByCompute && s.l.Binding() != loader.ByMain:
		return opinion{}
	}
	return find(Verdict{
		Title: fmt.Sprintf("%sbuilds are fast enough on average and some take far longer (they vary by %s of their mean), which holds up the batches behind them: %s of the step is lost to it", s.small(),
			phrase.Percent(cv), phrase.Percent(s.gain)),
		Confidence:  s.sure(0.8),
		Evidence:    s.build(s.wait()).value("build_variation", cv, "ratio", byBuilds),
		FalsifiedBy: "a run whose batches come in any order, or from a queue twice as long, whose step is no shorter",
	}, s.gain)
}

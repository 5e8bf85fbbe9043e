package wrap

import (
	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/probe/recording"
)

// tryOut answers the planner's question which other loaders to try: what the run has shown so far is analysed, beside the sampling,
// for that may take a second.
func (a *agent) tryOut() {
	if a.test == nil || !a.test.decision.Asks {
		return
	}
	if a.answer == nil {
		a.answer = make(chan []recording.Trial, 1)
		_ = a.writer.Flush() // the tap keeps the error
		out, all := a.out, a.test.planner.TriesAll()
		go func() { a.answer <- worthTrying(out, all) }()
		return
	}
	select {
	case trials := <-a.answer:
		a.test.planner.Try(trials)
	default:
	}
}

// worthTrying ranks the fixes of an unfinished recording, and returns what of them a loader made with other arguments shows. Where
// nothing can be ranked nothing is tried; where nobody asked for it, only what is most likely to be worth it.
func worthTrying(out string, all bool) (trials []recording.Trial) {
	result, _, err := reports.Analyse(out, analysis.Options{})
	if err != nil {
		return nil
	}
	if !all {
		return analysis.BestTrials(result)
	}
	return analysis.Trials(result)
}

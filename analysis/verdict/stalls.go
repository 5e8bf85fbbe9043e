package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// periodicStall: every so many steps one takes far longer outside next(): a checkpoint, a validation loop (F65, F66; scenario S27). Whatever
// the loader has ready meanwhile, it is not what is waited for.
func periodicStall(s *subject) opinion {
	st := s.p.Around.Stalls
	switch {
	case st.N == 0:
		return opinion{}
	case st.Share < Notable:
		return drop(fmt.Sprintf("%d steps took far longer than usual, %s of the wall time in all", st.N, phrase.Percent(st.Share)))
	case !st.Periodic():
		return drop(fmt.Sprintf("%d steps took %s longer than usual, at no regular distance", st.N, phrase.Duration(st.Seconds)))
	}
	return find(Verdict{
		Title: fmt.Sprintf("every %.0f steps the training stands still for %s%s: %s of the wall time, in which the loader waits for it",
			st.Every, phrase.Duration(st.Seconds), stalledBy(st.Validation, st.Saves, st.N), phrase.Percent(st.Share)),
		Confidence: 0.9,
		Evidence: evidence{}.value("stall_seconds", st.Seconds, "seconds", bySteps).value("steps_between_stalls", st.Every, "count", bySteps).
			value("stalls", float64(st.N), "count", bySteps).value("stall_share", st.Share, "ratio", bySteps).
			value("stalls_with_validation", float64(st.Validation), "count", bySteps).value("stalls_with_a_save", float64(st.Saves), "count", bySteps),
		FalsifiedBy: "a run without validation and checkpoints that is no shorter",
	}, st.Share)
}

func stalledBy(validation, saves, n int) string {
	switch {
	case 2*validation >= n:
		return " waiting for the data of a loader that does not train (validation)"
	case 2*saves >= n:
		return " beside a save (checkpoint)"
	}
	return ""
}

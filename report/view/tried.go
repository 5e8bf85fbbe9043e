package view

import (
	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/recording"
)

// tried says what a step took with every other loader that the run tried.
func tried(r *analysis.Result, st style) (notes []string) {
	for _, t := range r.Trials {
		what := recording.Trial{Workers: t.Workers, Prefetch: t.Prefetch, Memoised: t.Memoised}.String()
		step, saved := estimate(t.StepSeconds, st), estimate(t.Saved, percentStyle)
		if !step.Known || !saved.Known {
			notes = append(notes, "tried in this run: "+what+", "+step.Words())
			continue
		}
		note := "tried in this run: " + what + ", " + step.Text + " a step, which saves " + saved.Text
		if saved.Range != "" {
			note += " (" + saved.Range + ")"
		}
		notes = append(notes, note)
	}
	return notes
}

package compare

import (
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/analysis/track"
	"github.com/datawait/datawait/probe/unit"
)

// Tried sets the predictions of one run beside what the same run tried (diagnose --try). Only a fix that sets the loader's arguments is
// tried as it was predicted; samples kept in memory are what preparing them once leaves at best, and prove nothing.
func Tried(r *analysis.Result) []Check {
	s, out := newSide(Input{Result: r}), []Check{}
	for _, f := range r.Fixes {
		saved, ok := f.Measured.Get()
		if !ok || !f.Arguments.Workers.IsKnown() && !f.Arguments.Prefetch.IsKnown() {
			continue
		}
		c := Check{Fixes: []string{f.ID}, Title: f.Title, Seen: "it was tried in the same run", Metric: RowStep, Before: r.Step.MeanSeconds,
			Predicted: f.Predicted.StepSeconds, Measured: shorterBy(r.Step.MeanSeconds, saved)}
		c.Key = c.key(s, s)
		out = append(out, c.judge(tooFew(s, s)))
	}
	return out
}

// shorterBy is a step less the share of it that was saved against the live blocks beside the trial.
func shorterBy(step analysis.Est, saved stat.Estimate) analysis.Est {
	return shorter(step, unit.Some(saved))
}

// Entries are the lines of the track record that a run's own trials are worth.
func Entries(r *analysis.Result, version string, at time.Time) []track.Entry {
	c := Comparison{Version: version, Emulated: r.Emulated}
	var out []track.Entry
	for _, x := range Tried(r) {
		if e, ok := c.Entry(x, at); ok {
			out = append(out, e)
		}
	}
	return out
}

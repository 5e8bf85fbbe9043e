package view

import (
	"strings"

	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/track"
)

// Check is a prediction beside what came of it.
type Check struct {
	Title     string
	Of        string // "a step" or "an epoch"
	Before    Quantity
	Predicted Quantity
	Measured  Quantity
	Error     Quantity // of the measured against the predicted value
	Verdict   string   // "within its interval", "outside its interval", or "not judged"
	Kind      string   // within, outside or open
	Why       string   // it is not judged
	Seen      string   // how it is known that the fix was applied
	Counted   bool     // in the track record
}

func checksOf(c *compare.Comparison) []Check {
	var out []Check
	for _, x := range c.Predictions {
		row := compare.Row{Unit: "seconds", Before: x.Before, After: x.Predicted}
		_, st := rowStyles(row)
		p := Check{Title: upper(Clean(orWords(x.Title, strings.Join(x.Fixes, ", ")), 4*nameRunes)), Of: rowWords[x.Metric], Before: estimate(x.Before, st),
			Predicted: estimate(x.Predicted, st), Measured: estimate(x.Measured, st), Error: ratio(x.Error, signedStyle), Why: clause(x.Why), Seen: sentence(x.Seen), Counted: x.Counted}
		p.Verdict, p.Kind = "not judged", "open"
		if within, ok := x.Within.Get(); ok {
			p.Verdict, p.Kind = "outside its interval", "outside"
			if within {
				p.Verdict, p.Kind = "within its interval", "within"
			}
		}
		out = append(out, p)
	}
	return out
}

// noChecks says why no prediction stands beside what came of it.
func noChecks(c *compare.Comparison, v Comparison) string {
	switch {
	case len(v.Checks) > 0:
		return ""
	case !c.Comparable:
		return "Nothing is checked of runs that are not comparable."
	case len(v.Unclear) > 0:
		return "No prediction is checked."
	}
	return "None of the fixes that the run before ranked was seen to have been applied; --applied names what was."
}

// recordSentence says how the predictions that were checked on this machine came out.
func recordSentence(t *track.TrackRecord) string {
	if t == nil || t.Checked <= 0 {
		return ""
	}
	s := "of " + plural(t.Checked, "prediction") + " checked here, " + count(t.Within) + " fell within " + choose(t.Checked, "its", "their") + " interval"
	if t.Emulated {
		s = strings.Replace(s, "checked here", "checked here on the emulated GPU", 1)
	}
	if q := share(t.MedianError); q.Known {
		s += "; " + choose(t.Checked, "error ", "median error ") + q.Text
	}
	if q := share(t.MedianWidth); q.Known {
		s += ", " + choose(t.Checked, "width of the interval ", "median width of an interval ") + q.Text
	}
	return s
}

func choose(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

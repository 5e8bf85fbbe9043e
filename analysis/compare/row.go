package compare

import (
	"math"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// The units of rows.
const (
	unitRatio    = "ratio"
	unitSeconds  = "seconds"
	unitGPUHours = "gpu_hours"
	unitMoney    = "money"
	unitCount    = "count"
	unitBytes    = "bytes"
	unitRate     = "per_second"
)

// want says which way a number should go.
type want int

const (
	less    want = -1
	neither want = 0
	more    want = 1
)

// weigh makes a row of a number of both runs. why, where not empty, is the reason for which they are not compared.
func weigh(id, unitName string, w want, before, after analysis.Est, why string) Row {
	r := Row{ID: id, Unit: unitName, Before: before, After: after}
	b, knownBefore := before.Get()
	a, knownAfter := after.Get()
	bad := func(e stat.Estimate) bool { return !finite(e.Value, e.Low, e.High) }
	switch {
	case !knownBefore || !knownAfter || bad(b) || bad(a):
		return r.without(Unknown, missing(before, after))
	case why != "":
		return r.without(NotComparable, why)
	}
	d := difference(b, a)
	r.Difference, r.Ratio = together(d, b, a), unit.None[stat.Estimate]("an interval reaches zero")
	if q, ok := quotient(b, a); ok {
		r.Ratio = together(q, b, a)
	}
	r.Outcome, r.Why = judge(unitName, w, b, a, d)
	return r
}

func (r Row) without(o Outcome, why string) Row {
	r.Outcome, r.Why = o, why
	r.Difference, r.Ratio = unit.None[stat.Estimate](why), unit.None[stat.Estimate](why)
	return r
}

// missing says which side is not known, and why.
func missing(before, after analysis.Est) string {
	reason := func(m analysis.Est) string {
		if m.Why() == "" {
			return "not measured"
		}
		return m.Why()
	}
	switch {
	case before.IsKnown():
		return "after: " + reason(after)
	case after.IsKnown():
		return "before: " + reason(before)
	case reason(before) == reason(after):
		return reason(before)
	}
	return "before: " + reason(before) + "; after: " + reason(after)
}

// judge says what a difference comes to.
func judge(unitName string, w want, b, a stat.Estimate, d stat.Interval) (Outcome, string) {
	switch {
	case w == neither:
		return Unweighed, ""
	case !weighed(b) || !weighed(a):
		return Unweighed, "no interval says whether the difference is more than chance"
	case d.Low <= 0 && d.High >= 0 || trifling(unitName, b.Value, a.Value):
		return Same, ""
	case (d.Value > 0) == (w == more):
		return Better, ""
	}
	return Worse, ""
}

func trifling(unitName string, before, after float64) bool {
	if unitName == unitRatio {
		return math.Abs(after-before) < TrifleShare
	}
	return math.Abs(after-before) < Trifle*math.Max(math.Abs(before), math.Abs(after))
}

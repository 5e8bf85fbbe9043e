package compare

import (
	"math"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// 100 ± 10 becomes 60 ± 8: −40 ± √(10² + 8²). On a logarithmic scale e^(0 ± 0.1) becomes e^(−1 ± 0.2): the ratio is e^(−1 ± √0.05).
func TestIntervalsOfADifferenceAndARatioAreArithmetic(t *testing.T) {
	d := difference(stat.Estimate{Value: 100, Low: 90, High: 110}, stat.Estimate{Value: 60, Low: 52, High: 68})
	if half := math.Sqrt(164); d.Value != -40 || math.Abs(d.Low+40+half) > 1e-9 || math.Abs(d.High+40-half) > 1e-9 {
		t.Errorf("%+v", d)
	}
	e := func(mean, half float64) stat.Estimate {
		return stat.Estimate{Value: math.Exp(mean), Low: math.Exp(mean - half), High: math.Exp(mean + half)}
	}
	q, ok := quotient(e(0, 0.1), e(-1, 0.2))
	if half := math.Sqrt(0.05); !ok || math.Abs(math.Log(q.Value)+1) > 1e-9 || math.Abs(math.Log(q.Low)+1+half) > 1e-9 || math.Abs(math.Log(q.High)+1-half) > 1e-9 {
		t.Errorf("%+v, %t", q, ok)
	}
	if _, ok := quotient(stat.Estimate{Value: 1, Low: 0, High: 2}, stat.Estimate{Value: 1, Low: 0.5, High: 2}); ok {
		t.Error("a ratio of what may be nothing has bounds")
	}
}

// The interval of a long tail is longer on its side in the difference too: 10 (9–10) less 10 (10–14).
func TestADifferenceKeepsTheShapeOfItsIntervals(t *testing.T) {
	d := difference(stat.Estimate{Value: 10, Low: 9, High: 10}, stat.Estimate{Value: 10, Low: 10, High: 14})
	if d.Low != 0 || math.Abs(d.High-math.Hypot(4, 1)) > 1e-9 {
		t.Errorf("%+v", d)
	}
}

func TestWhatADifferenceComesTo(t *testing.T) {
	nothing := unit.None[stat.Estimate]("nobody looked")
	for _, c := range []struct {
		name          string
		unit          string
		want          want
		before, after analysis.Est
		why           string
		outcome       Outcome
	}{
		{"a shorter step", unitSeconds, less, about(0.1, 0.005), about(0.03, 0.001), "", Better},
		{"a longer one", unitSeconds, less, about(0.03, 0.001), about(0.1, 0.005), "", Worse},
		{"more activity", unitRatio, more, about(0.2, 0.02), about(0.6, 0.02), "", Better},
		{"intervals that leave it open", unitSeconds, less, about(0.1, 0.02), about(0.09, 0.02), "", Same},
		{"certain and too small to matter", unitSeconds, less, about(0.1, 0.0001), about(0.099, 0.0001), "", Same},
		{"half a point of a share", unitRatio, less, about(0.02, 0.0001), about(0.015, 0.0001), "", Same},
		{"one observation on one side", unitSeconds, less, exactly(2), about(1, 0.1), "", Unweighed},
		{"an account", unitRatio, neither, exactly(0.5), exactly(0.1), "", Unweighed},
		{"one side missing", unitSeconds, less, nothing, about(1, 0.1), "", Unknown},
		{"other machines", unitSeconds, less, about(2, 0.1), about(1, 0.1), "other machines", NotComparable},
		{"missing goes before incomparable", unitSeconds, less, nothing, about(1, 0.1), "other machines", Unknown},
		{"no number", unitSeconds, less, about(math.NaN(), 1), about(1, 0.1), "", Unknown},
	} {
		r := weigh("x", c.unit, c.want, c.before, c.after, c.why)
		if r.Outcome != c.outcome {
			t.Errorf("%s: %s (%s), want %s", c.name, r.Outcome, r.Why, c.outcome)
		}
		if r.Outcome.Compared() != r.Difference.IsKnown() || !r.Outcome.Compared() && r.Why == "" {
			t.Errorf("%s: %s with a difference of %+v because %q", c.name, r.Outcome, r.Difference, r.Why)
		}
	}
}

func TestAMissingSideIsNamed(t *testing.T) {
	a, b := unit.None[stat.Estimate]("no test ran"), unit.None[stat.Estimate]("no GPU")
	for want, got := range map[string]string{
		"before: no test ran":                missing(a, about(1, 1)),
		"after: no GPU":                      missing(about(1, 1), b),
		"no GPU":                             missing(b, b),
		"before: no test ran; after: no GPU": missing(a, b),
		"after: not measured":                missing(about(1, 1), analysis.Est{}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

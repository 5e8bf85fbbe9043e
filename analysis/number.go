package analysis

import (
	"math"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// quotient is a ÷ b, unknown where b is not positive.
func quotient(a, b float64, why string) Ratio {
	if !(b > 0) {
		return unit.None[float64](why)
	}
	return unit.Float(a/b, why)
}

// estimate is a ratio of sums with its interval, unknown with fewer than two independent observations.
func estimate(r *stat.Ratio, n int, grade stat.Grade, source, why string) Est {
	return scaled(r, 1, n, grade, source, why)
}

// portion is an estimate of something that cannot exceed the whole.
func portion(r *stat.Ratio, n int, grade stat.Grade, source, why string) Est {
	e, ok := estimate(r, n, grade, source, why).Get()
	if !ok {
		return estimate(r, n, grade, source, why)
	}
	e.Value, e.High = math.Min(1, e.Value), math.Min(1, e.High)
	return unit.Some(e)
}

// scaled is estimate in another unit.
func scaled(r *stat.Ratio, by float64, n int, grade stat.Grade, source, why string) Est {
	if r == nil || r.N() == 0 {
		return unit.None[stat.Estimate](why)
	}
	i, ok := r.Interval()
	if !ok || math.IsNaN(i.Low) || math.IsInf(i.High, 0) {
		return unit.None[stat.Estimate]("too few observations for an interval")
	}
	i = stat.Interval{Value: i.Value * by, Low: math.Max(0, i.Low*by), High: i.High * by}
	return unit.Some(i.Estimate(n, grade, source))
}

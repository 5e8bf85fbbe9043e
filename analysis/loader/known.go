package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// some returns a known number.
func some(v float64) Num { return unit.Some(v) }

// missing returns an unknown number with its reason.
func missing(why string) Num { return unit.None[float64](why) }

// known returns v where it was measured, else unknown with the reason.
func known(measured bool, v float64, why string) Num {
	if !measured {
		return missing(why)
	}
	return unit.Float(v, why)
}

// positive returns a known number above 0, else the fallback.
func positive(n Num, fallback float64) float64 {
	if v, ok := n.Get(); ok && v > 0 {
		return v
	}
	return fallback
}

var noEstimate stat.Estimate

// someEst returns a known estimate.
func someEst(e stat.Estimate) Est { return unit.Some(e) }

// less subtracts two estimates; the interval is the one of independent errors, and nothing goes below 0.
func less(a, b stat.Estimate) stat.Estimate {
	v := math.Max(0, a.Value-b.Value)
	down := math.Hypot(a.Value-a.Low, b.High-b.Value)
	up := math.Hypot(a.High-a.Value, b.Value-b.Low)
	return stat.Estimate{
		Value: v, Low: math.Max(0, v-down), High: v + up,
		N: min(a.N, b.N), Grade: stat.Worse(a.Grade, b.Grade), Source: a.Source,
	}
}

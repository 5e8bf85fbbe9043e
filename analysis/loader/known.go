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
	if v, ok := n.Get(); ok && v > 0 && !math.IsInf(v, 0) {
		return v
	}
	return fallback
}

var noEstimate stat.Estimate

// valid returns a known estimate whose value is a number ≥ 0. Anything else a producer hands over is no measurement.
func valid(e Est) (stat.Estimate, bool) {
	v, ok := e.Get()
	if !ok || !(v.Value >= 0) || math.IsInf(v.Value, 0) {
		return stat.Estimate{}, false
	}
	if !(v.Low <= v.Value) || v.Low < 0 {
		v.Low = v.Value
	}
	if !(v.High >= v.Value) || math.IsInf(v.High, 0) {
		v.High = v.Value
	}
	return v, true
}

// validNum returns a known number ≥ 0.
func validNum(n Num) (float64, bool) {
	v, ok := n.Get()
	if !ok || !(v >= 0) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

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

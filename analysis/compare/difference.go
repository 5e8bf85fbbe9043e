package compare

import (
	"math"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Trifle is the relative difference below which nothing is called a difference, and TrifleShare the same for shares, absolute. Two
// runs of one job on a quiet machine differ by as much, and no interval of either shows it.
const (
	Trifle      = 0.02
	TrifleShare = 0.01
)

// weighed reports whether an estimate has an interval. A plain count, sum or single observation has none.
func weighed(e stat.Estimate) bool { return e.Low < e.High }

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// difference is after − before. The interval combines those of both, as of independent measurements, without taking them for
// symmetrical (Zou & Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27, 2008).
func difference(before, after stat.Estimate) stat.Interval {
	d := after.Value - before.Value
	return stat.Interval{
		Value: d,
		Low:   d - math.Hypot(after.Value-after.Low, before.High-before.Value),
		High:  d + math.Hypot(after.High-after.Value, before.Value-before.Low),
	}
}

// quotient is after ÷ before, by the same rule on their logarithms; ok is false where an interval reaches zero.
func quotient(before, after stat.Estimate) (stat.Interval, bool) {
	if !(before.Low > 0 && after.Low > 0) {
		return stat.Interval{}, false
	}
	l := difference(logarithm(before), logarithm(after))
	return stat.Interval{Value: after.Value / before.Value, Low: math.Exp(l.Low), High: math.Exp(l.High)}, true
}

func logarithm(e stat.Estimate) stat.Estimate {
	e.Value, e.Low, e.High = math.Log(e.Value), math.Log(e.Low), math.Log(e.High)
	return e
}

// together gives an interval what both of its inputs have in common: the weaker grade, the smaller n.
func together(i stat.Interval, a, b stat.Estimate) analysis.Est {
	if !finite(i.Value, i.Low, i.High) {
		return unit.Broken[stat.Estimate]("the result is not a number")
	}
	source := a.Source
	if b.Source != source {
		source = "both runs"
	}
	return unit.Some(i.Estimate(min(a.N, b.N), stat.Worse(a.Grade, b.Grade), source))
}

// product is a × n for a plain number n.
func product(m analysis.Est, n float64) analysis.Est {
	e, ok := m.Get()
	if !ok {
		return m
	}
	e.Value, e.Low, e.High = e.Value*n, e.Low*n, e.High*n
	return unit.Some(e)
}

// sum adds independent estimates.
func sum(a, b analysis.Est) analysis.Est {
	x, ok := a.Get()
	if !ok {
		return a
	}
	y, ok := b.Get()
	if !ok {
		return b
	}
	v := x.Value + y.Value
	return together(stat.Interval{Value: v, Low: v - math.Hypot(x.Value-x.Low, y.Value-y.Low), High: v + math.Hypot(x.High-x.Value, y.High-y.Value)}, x, y)
}

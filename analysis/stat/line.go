package stat

import "math"

// Line is a least-squares line y = Zero.Value + Slope·x. Zero is y at x = 0 and One is y at x = 1, with 95 % intervals; where x is a
// share of time, they are what y is without and wholly within that time.
type Line struct {
	Zero, One Interval
	Slope     float64
	R2        float64 // share of the variance of y that the line explains
	N         int
}

// Fit fits a line; ok is false with fewer than three points, or where x does not vary.
func Fit(x, y []float64) (Line, bool) {
	n := float64(len(x))
	if len(x) < 3 {
		return Line{}, false
	}
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var sxx, sxy, syy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		sxx += dx * dx
		sxy += dx * dy
		syy += dy * dy
	}
	if !(sxx > 1e-12*n) {
		return Line{}, false
	}
	slope := sxy / sxx
	residual := math.Max(0, syy-slope*sxy)
	l := Line{Slope: slope, N: len(x)}
	if syy > 0 {
		l.R2 = 1 - residual/syy
	}
	variance := residual / (n - 2)
	factor := T975(len(x) - 2)
	at := func(x0 float64) Interval {
		half := factor * math.Sqrt(variance*(1/n+(x0-mx)*(x0-mx)/sxx))
		v := my + slope*(x0-mx)
		return Interval{v, v - half, v + half}
	}
	l.Zero, l.One = at(0), at(1)
	return l, true
}

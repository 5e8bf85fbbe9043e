package stat

import "math"

// t975 are the 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom.
var t975 = [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}

// T975 returns the factor that turns a standard error into half a 95 % interval, for the given degrees of freedom; infinite
// below one. Beyond the table it is the Cornish-Fisher expansion (Abramowitz & Stegun 26.7.5), right to 0.001.
func T975(freedom int) float64 {
	switch {
	case freedom < 1:
		return math.Inf(1)
	case freedom <= len(t975):
		return t975[freedom-1]
	}
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}

// Interval is a value between two bounds.
type Interval struct{ Value, Low, High float64 }

// Exact is an interval without width: a count or a plain sum.
func Exact(v float64) Interval { return Interval{v, v, v} }

// Half returns half the width.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// Clamp keeps the bounds within what the number can be.
func (i Interval) Clamp(low, high float64) Interval {
	clamp := func(v float64) float64 { return math.Min(math.Max(v, low), high) }
	return Interval{clamp(i.Value), clamp(i.Low), clamp(i.High)}
}

// Estimate adds what a reader needs to weigh the interval.
func (i Interval) Estimate(n int, grade Grade, source string) Estimate {
	return Estimate{Value: i.Value, Low: i.Low, High: i.High, N: n, Grade: grade, Source: source}
}

// Mean returns the mean of independent observations with its 95 % t-interval. ok is false for fewer than two: one observation
// says nothing about its spread.
func Mean(v []float64) (Interval, bool) {
	n := float64(len(v))
	if len(v) < 2 {
		return Interval{}, false
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	mean := sum / n
	squares := 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	half := T975(len(v)-1) * math.Sqrt(squares/(n-1)/n)
	return Interval{mean, mean - half, mean + half}, !math.IsNaN(half)
}

// Difference returns how much larger the mean of a is than that of b, with Welch's 95 % interval. Where one of them is a single
// observation, it is taken to vary as the other does; with one each, ok is false.
func Difference(a, b []float64) (Interval, bool) {
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) < 3 {
		return Interval{}, false
	}
	ma, va := moments(a)
	mb, vb := moments(b)
	if len(a) == 1 {
		va = vb
	}
	if len(b) == 1 {
		vb = va
	}
	ea, eb := va/float64(len(a)), vb/float64(len(b))
	freedom := max(1, min(max(len(a), 2), max(len(b), 2))-1) // the smaller sample's: wider than Welch's own, never too narrow
	half := T975(freedom) * math.Sqrt(ea+eb)
	return Interval{ma - mb, ma - mb - half, ma - mb + half}, !math.IsNaN(half)
}

// moments returns mean and variance; the variance of one observation is 0.
func moments(v []float64) (mean, variance float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / max(1, n-1)
	}
	return mean, variance
}

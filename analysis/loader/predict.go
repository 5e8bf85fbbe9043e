package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/stat"
)

// inputRange is one input of the law with the interval it was measured to.
type inputRange struct {
	low, high float64
	set       func(*Law, float64)
}

// vary notes an input's interval.
func (m *Model) vary(e stat.Estimate, set func(*Law, float64)) {
	m.varyBy(e.Value-e.Low, e.High-e.Value, e.Value, set)
}

// varyBy notes an input's interval by its distances below and above the value.
func (m *Model) varyBy(below, above, value float64, set func(*Law, float64)) {
	if below <= 0 && above <= 0 {
		return
	}
	m.ranges = append(m.ranges, inputRange{math.Max(0, value-below), value + above, set})
}

// Change is a fix as the model sees it: a pure function from one configuration to another.
type Change func(Law) Law

// Predict returns the seconds of a step after a change.
//
// The change's effect in the law is taken off the step that was measured, so what the law does not explain stays: a hand-off, a
// variability, a timer's slack do not vanish because a worker was added. No prediction goes below C as the change leaves it.
//
// The interval combines, as independent errors, what each input's own interval does to the result, and the law's error on the
// step that ran.
func (m Model) Predict(change Change) stat.Estimate {
	now, after := m.Law, change(m.Law)
	t := m.Parameters.Step.Seconds.Or(stat.Estimate{Value: now.Step()})
	residual := t.Value - now.Step()
	value := math.Max(after.Compute, after.Step()+residual)
	least := after.Compute
	var down, up float64
	for _, r := range m.ranges {
		for _, v := range [2]float64{r.low, r.high} {
			shifted, ceiling := m.shift(r, v, change, t.Value)
			least = math.Min(least, ceiling)
			d := shifted - value
			down, up = math.Hypot(down, math.Min(0, d)), math.Hypot(up, math.Max(0, d))
		}
	}
	down, up = math.Hypot(down, residual), math.Hypot(up, residual)
	up = math.Hypot(up, m.variability(after))
	return stat.Estimate{
		Value: value, Low: math.Max(least, value-down), High: value + up,
		N: t.N, Grade: stat.Worse(m.grade, t.Grade), Source: "predicted by the loader's law",
	}
}

// shift is the prediction, and C, with one input moved to the edge of its interval. Both configurations move: the measured step does not.
func (m Model) shift(r inputRange, v float64, change Change, t float64) (step, ceiling float64) {
	now := m.Law
	r.set(&now, v)
	after := change(now)
	return math.Max(after.Compute, after.Step()+t-now.Step()), after.Compute
}

// variability is how much longer than the law's a step may be where two terms lie close, because builds do not interlock as
// neatly as the law takes for granted.
func (m Model) variability(l Law) float64 {
	t := l.Terms()
	if l.Workers == 0 || t.Compute <= 0 {
		return 0
	}
	cv, _ := m.Parameters.Batch.CV.Get()
	varying := close2(math.Max(t.Workers, t.Shared), t.Compute) * math.Min(cv, 2)
	mixing := 0.0
	if l.Off > 0 && float64(l.Workers) > l.WorkerCores && t.Cores > t.Compute {
		mixing = close2(t.Workers, t.Cores)
	}
	return spread * math.Hypot(varying, mixing) * l.Step()
}

// spread scales variability. An emulation of PyTorch's queueing with builds of 40 ms that vary by 80 % and C = 12 ms took 21 %
// longer than max(C, L/W) at L/W = 0.83·C and 2 % at 0.42·C; spread·0.8·0.83² and spread·0.8·0.42² are 17 and 4 %. Builds of
// constant times that wait and compute in turn, more of them than cores, take up to 40 % longer than the law where L/W = B/K
// (TestTwinBound), half of that on average.
const spread = 0.3

// close2 is 1 where two terms are equal and falls with the square of their ratio.
func close2(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	r := math.Min(a, b) / math.Max(a, b)
	return r * r
}

package loader

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/datawait/datawait/analysis/stat"
)

// inputRange is one input of the law with the interval it was measured to.
type inputRange struct {
	value, low, high float64
	set              func(*Law, float64)
	open             bool // nothing measured it: a prediction's interval reaches to what either end would make of it
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
	m.ranges = append(m.ranges, inputRange{value: value, low: math.Max(0, value-below), high: value + above, set: set})
}

// unmeasured notes an input of which only the ends are known.
func (m *Model) unmeasured(low, value, high float64, set func(*Law, float64)) {
	if high > low {
		m.ranges = append(m.ranges, inputRange{value: value, low: low, high: high, set: set, open: true})
	}
}

// Change is a fix as the model sees it: a pure function from one configuration to another.
type Change func(Law) Law

// Predict returns the seconds of a step after a change.
//
// The change's effect in the replay is taken off the step that was measured, so what the replay does not explain stays. No
// prediction goes below C as the change leaves it.
//
// The interval is a bootstrap: blocks of neighbouring batches are drawn anew, and every input within the interval it was measured
// to; the configuration that ran and the changed one are replayed over the same draw. What the replay missed of the measured step
// is added to both ends, as an independent error.
func (m Model) Predict(change Change) stat.Estimate {
	after := change(m.Law)
	now := m.Replay(m.Law)
	t := m.Pace.Or(stat.Estimate{Value: now})
	value := math.Max(after.Compute, m.Replay(after)+t.Value-now)
	low, high := value, value
	if m.film != nil {
		low, high = m.spread(change, t.Value)
	}
	for _, in := range m.ranges {
		for _, v := range [2]float64{in.low, in.high} {
			if in.open {
				end := m.at(in, v, change, t.Value)
				low, high = math.Min(low, end), math.Max(high, end)
			}
		}
	}
	missed := t.Value - now
	down, up := math.Hypot(math.Max(0, value-low), missed), math.Hypot(math.Max(0, high-value), missed)
	return stat.Estimate{
		Value: value, Low: math.Max(math.Min(low, after.Compute), value-down), High: value + up,
		N: t.N, Grade: stat.Worse(m.grade, t.Grade), Source: "predicted by replaying the loader",
	}
}

// at is the prediction with one input at an end of its range. Both configurations move: the measured step does not.
func (m Model) at(in inputRange, v float64, change Change, measured float64) float64 {
	now := m.Law
	in.set(&now, v)
	after := change(now)
	return math.Max(after.Compute, measured+m.Replay(after)-m.Replay(now))
}

// manyDraws is how often the batches are drawn anew where nobody says otherwise; fewDraws where many workers that share cores make
// a replay long.
const (
	manyDraws = 500
	fewDraws  = 100
	crowd     = 32
)

func (m Model) draws() int {
	if m.Draws > 0 {
		return m.Draws
	}
	if s := m.Law.setup(); m.Law.Workers > crowd && s.Crowded() {
		return fewDraws
	}
	return manyDraws
}

// spread is the middle 95 % of a prediction over the draws.
func (m Model) spread(change Change, measured float64) (low, high float64) {
	n := m.draws()
	before, all := m.film.draws[n], make([]float64, n)
	first := before == nil
	source := rand.NewPCG(0, 0)
	r := rand.New(source)
	for d := range n {
		source.Seed(uint64(d), 1) // a draw is the same for every change
		now := m.shake(r)
		lanes, batches := m.film.draw(m.Law, r)
		if first {
			before = append(before, m.film.run(now, lanes, batches).Seconds)
		}
		after := change(now)
		all[d] = math.Max(after.Compute, measured+m.film.run(after, lanes, batches).Seconds-before[d])
		if math.IsNaN(all[d]) {
			all[d] = measured
		}
	}
	m.film.draws[n] = before
	slices.Sort(all)
	return all[n*25/1000], all[n-1-n*25/1000]
}

// shake is the configuration that ran with every input somewhere in the interval it was measured to. What was not measured stays: its ends
// are looked at by themselves.
func (m Model) shake(r *rand.Rand) Law {
	l := m.Law
	for _, in := range m.ranges {
		if in.open {
			continue
		}
		x := r.NormFloat64() / 1.96 // an interval holds 95 %
		v := in.value + x*(in.high-in.value)
		if x < 0 {
			v = in.value + x*(in.value-in.low)
		}
		in.set(&l, math.Max(0, v))
	}
	return l
}

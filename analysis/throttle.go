package analysis

import (
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// clock is what held the device's clock down, and how much more time steps take outside next() meanwhile.
//
//	states    |  at work  | held down |  at work  |  idle  |
//	steps      | | | | | | |  |  |  |  | | | | |
//	compared   ^^^^^^^^^^    ^^^^^^^^^    ^^^^^^^
func (k *rank) clock() loader.Clock {
	d := k.device
	row := d.stateRow()
	c := loader.Clock{GPU: d.called(), Thermal: row.Thermal, Hardware: row.Hardware, PowerCap: row.PowerCap, Of: unit.None[float64](noWork),
		Longer: unit.None[stat.Estimate]("no steady step lies in both"), Steps: unit.None[float64]("no steady step lies in both")}
	if now, ok := row.Clock.Get(); ok {
		c.Of = quotient(now, row.ClockMax.Or(0), "no highest clock was told")
	}
	if row.Thermal.Or(0)+row.Hardware.Or(0)+row.PowerCap.Or(0) == 0 {
		return c
	}
	states := d.clockStates()
	each := max(1, k.steady.steps/64)
	down, full := stat.Batch(each), stat.Batch(each)
	k.walk(nil, func(s *step) {
		if !s.counts() {
			return
		}
		switch outside := float64(s.end - s.begin - s.wait); states.at(s.begin + (s.end-s.begin)/2) {
		case heldDown:
			down.Add(outside, 1)
		case atFull:
			full.Add(outside, 1)
		}
	})
	slow, ok1 := down.Interval()
	fast, ok2 := full.Interval()
	if !ok1 || !ok2 || down.N() < minSteady || full.N() < minSteady || !(fast.Low > 0) {
		return c
	}
	_, n := down.Sums()
	_, m := full.Sums()
	c.Longer = unit.Some(stat.Estimate{Value: slow.Value/fast.Value - 1, Low: slow.Low/fast.High - 1, High: slow.High/fast.Low - 1, N: int(min(n, m)),
		Grade: stat.GradeB, Source: "hook clock, and the driver's reasons"})
	c.Steps = unit.Some(n / (n + m))
	return c
}

// clockState is what the driver said of the clock at a time.
type clockState int

const (
	clockUnknown clockState = iota // or the GPU was idle, or both were in one reading
	heldDown
	atFull
)

// clockStates answers for times in order.
type clockStates struct {
	spans  []span
	states []clockState
	next   int
}

func (d *device) clockStates() *clockStates {
	c := &clockStates{}
	for i := range d.States.Len() {
		begin, end, _, thermal := d.States.At(i, load.StateThermal)
		_, _, _, hardware := d.States.At(i, load.StateHardware)
		_, _, _, capped := d.States.At(i, load.StateCapped)
		state := clockUnknown
		switch {
		case max(thermal, hardware, capped) > 0.5: // of a long run, one reading may stand for several
			state = heldDown
		case thermal == 0 && hardware == 0 && capped == 0:
			state = atFull
		}
		c.spans, c.states = append(c.spans, span{begin, end}), append(c.states, state)
	}
	return c
}

func (c *clockStates) at(t int64) clockState {
	for c.next < len(c.spans) && c.spans[c.next].end < t {
		c.next++
	}
	if c.next == len(c.spans) || c.spans[c.next].begin > t {
		return clockUnknown
	}
	return c.states[c.next]
}

// slowestClock is the clock of the rank's GPU, or of another rank's whose clock certainly costs its steps more: ranks wait for one
// another.
func (r *run) slowestClock(k *rank) loader.Clock {
	c := k.usage.Clock
	least := func(c loader.Clock) float64 {
		e, ok := c.Longer.Get()
		if !ok {
			return 0
		}
		return e.Low
	}
	for _, o := range r.ranked {
		if o != k && least(o.usage.Clock) > max(0, least(c)) {
			c = o.usage.Clock
		}
	}
	return c
}

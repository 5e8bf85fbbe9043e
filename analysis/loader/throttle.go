package loader

// Limits of [Model.Throttled].
const (
	oftenDown = 0.05 // of the working time from which a clock that is held down is worth a look
	slowClock = 0.85 // of the highest clock; at 1580 of 1965 MHz a B200 took 15 % longer (F80)
	slowSteps = 0.03 // longer from which steps count as slower: as for any fix
)

// Throttle is a clock that is held down.
type Throttle struct {
	By    string  // temperature, the board or the power limit
	Share float64 // of the working time
	Of    Num     // clock ÷ highest

	Measured bool    // steps at a clock that is held down could be compared with others
	Slower   bool    // … and are certainly slower; not measured: the clock is so low, for a reason that is no setting, that they must be
	Lost     float64 // seconds per step; 0 where not measured
}

// Throttled says whether something holds the clock down, and whether steps are slower for it. A power limit that is reached is what a
// GPU at full work shows (fixture M8): it is no finding unless steps show it. Temperature and the board are, when the clock is low.
func (m Model) Throttled() (t Throttle, ok bool) {
	c := m.Parameters.Device.Clock
	for _, r := range []struct {
		by    string
		share Num
	}{{ByTemperature, c.Thermal}, {ByBoard, c.Hardware}, {ByPowerLimit, c.PowerCap}} {
		if v, known := r.share.Get(); known && v > t.Share {
			t.By, t.Share = r.by, v
		}
	}
	if t.Share < oftenDown {
		return Throttle{}, false
	}
	t.Of = c.Of
	longer, measured := c.Longer.Get()
	steps, known := c.Steps.Get()
	if t.Measured = measured && known; t.Measured {
		t.Slower = longer.Low > 0 && longer.Value >= slowSteps
		t.Lost = max(0, steps*longer.Value/(1+steps*longer.Value)*m.Law.Compute)
		return t, true
	}
	of, known := c.Of.Get()
	t.Slower = known && of <= slowClock && t.By != ByPowerLimit
	return t, true
}

// What holds a clock down.
const (
	ByTemperature = "temperature"
	ByBoard       = "the board"
	ByPowerLimit  = "the power limit"
)

package compare

import (
	"time"

	"github.com/datawait/datawait/analysis/track"
)

// Entry is a check as a line of the track record; ok is false for one that does not count.
func (c *Comparison) Entry(x Check, at time.Time) (track.Entry, bool) {
	p, known := x.Predicted.Get()
	m, also := x.Measured.Get()
	if !x.Counted || !known || !also || len(x.Fixes) != 1 {
		return track.Entry{}, false
	}
	return track.Entry{Schema: track.Schema, At: at, Version: c.Version, Key: x.Key, Emulated: c.Emulated, Fix: x.Fixes[0], Metric: x.Metric,
		Predicted: p.Value, Low: p.Low, High: p.High, Measured: m.Value}, true
}

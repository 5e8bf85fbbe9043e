package analysis

import (
	"math"
	"testing"
)

// TestArrivals: what next() takes on a batch that is there, not on one that is under way.
func TestArrivals(t *testing.T) {
	const ms = 1_000_000
	type handed struct {
		n         int
		early, ns int64
	}
	for _, c := range []struct {
		name string
		all  []handed
		want float64 // ms; 0 = unknown
	}{
		{"there for long", []handed{{100, 30 * ms, 1.2 * ms}}, 1.2},
		{"some of them late", []handed{{50, -5 * ms, 1.5 * ms}, {50, 6 * ms, 1.2 * ms}}, 1.2},
		{"sent just now", []handed{{100, 1 * ms, 1.2 * ms}}, 0},
		{"all late", []handed{{100, -5 * ms, 1.5 * ms}}, 0},
		{"feeders wait for Python's lock (F40)", []handed{{50, -2 * ms, 12 * ms}, {50, 8 * ms, 8 * ms}}, 0},
		{"the same, and some there for certain", []handed{{50, -2 * ms, 12 * ms}, {50, 8 * ms, 8 * ms}, {20, 40 * ms, 1.4 * ms}}, 1.4},
		{"a late one that took long does not count", []handed{{2, -2 * ms, 80 * ms}, {100, 10 * ms, 1.2 * ms}}, 1.2},
		{"many tensors: there, and slow all the same (F51)", []handed{{100, 50 * ms, 30 * ms}, {50, -1 * ms, 20 * ms}}, 30},
		{"early by hours", []handed{{20, 1 << 62, 2 * ms}}, 2},
		{"a handful, one of them held up", []handed{{200, -25 * ms, 1.6 * ms}, {18, 40 * ms, 1.2 * ms}, {1, 40 * ms, 80 * ms}}, 0},
	} {
		var a arrivals
		for _, h := range c.all {
			for range h.n {
				a.add(h.early, h.ns)
			}
		}
		got, ok := a.ready().Get()
		if ok != (c.want > 0) || math.Abs(1e3*got-c.want) > 1e-9 {
			t.Errorf("%s: %v ms, want %v", c.name, 1e3*got, c.want)
		}
	}
}

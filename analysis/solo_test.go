package analysis

import "testing"

// Nineteen builds of 10 ms and one of 400 ms, over and over; four were built alone, none of them slow, or one: their mean says nothing of
// the mean of all, 29.5 ms.
func TestBuildsAloneOfAHeavyTailAreNotCompared(t *testing.T) {
	for _, c := range []struct {
		name string
		slow int64 // ns, of every twentieth build
		want bool
	}{{"even", 12e6, true}, {"a heavy tail", 400e6, false}} {
		b := newCrew(0)
		for n := range 200 {
			if n%20 == 19 {
				b.built(c.slow)
			} else {
				b.built(10e6)
			}
		}
		b.solo, b.soloOff = []float64{0.01, 0.01, 0.01, 0.01}, []float64{0.01, 0.01, 0.01, 0.01}
		if s := b.soloCosts(); s.Wall.IsKnown() != c.want || s.OffCPU.IsKnown() != c.want {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

package live

import (
	"maps"
	"math"
)

// Durations counts lengths of time in buckets that are exponential to base 2^(1/8), which are those of a native histogram of
// Prometheus of schema 3 (prometheus.io/docs/specs/native_histograms, "Schema"): bucket i holds what is above 2^((i-1)/8) s and at
// most 2^(i/8) s. Every power of 2 is a bound, so a classic histogram with such bounds can be made of it without an error.
// The zero Durations are none.
type Durations struct {
	Count   uint64
	Sum     float64 // seconds
	Zero    uint64  // of 0
	Buckets map[int]uint64
}

// Schema is the resolution of the buckets: 2^Schema of them from a power of 2 to the next.
const Schema = 3

// least is the length below which a duration counts as 0: none that is told in nanoseconds is.
const least = 1e-9

// Add counts one duration.
func (d *Durations) Add(seconds float64) {
	if !(seconds >= 0) || math.IsInf(seconds, 1) {
		return
	}
	d.Count++
	d.Sum += seconds
	if seconds < least {
		d.Zero++
		return
	}
	if d.Buckets == nil {
		d.Buckets = map[int]uint64{}
	}
	d.Buckets[bucket(seconds)]++
}

// bucket returns the number of the bucket of a length above 0. The logarithm is exact at powers of 2, where rounding would matter
// to a classic histogram: there the fraction is 1/2.
func bucket(seconds float64) int {
	fraction, exponent := math.Frexp(seconds) // seconds = fraction · 2^exponent, 1/2 <= fraction < 1
	if fraction == 0.5 {
		return (exponent - 1) << Schema
	}
	return exponent<<Schema + int(math.Ceil(math.Log2(fraction)*(1<<Schema)))
}

// AtMost counts the durations that are no longer than 2^exponent seconds.
func (d Durations) AtMost(exponent int) uint64 {
	n := d.Zero
	for i, count := range d.Buckets {
		if i <= exponent<<Schema {
			n += count
		}
	}
	return n
}

// plausible reports whether [Durations.Add] can have come to this.
func (d Durations) plausible() bool {
	count := d.Zero
	for i, n := range d.Buckets {
		if i < bucket(least) || i > bucket(1e11) || n > most {
			return false
		}
		count += n
	}
	return count == d.Count && count <= most && d.Sum >= 0 && !math.IsInf(d.Sum, 1)
}

// clone returns a copy.
func (d Durations) clone() Durations {
	d.Buckets = maps.Clone(d.Buckets)
	return d
}

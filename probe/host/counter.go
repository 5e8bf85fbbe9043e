package host

import (
	"math"

	"github.com/datawait/datawait/probe/recording"
)

// unknown marks a counter nobody could read. It is the format's own mark, so it can be recorded as it is.
const unknown = recording.Unknown64

var nan = float32(math.NaN())

// userHZ is the unit of the times in /proc/stat and /proc/PID/stat: ticks per second. It is part of the kernel's interface
// to programs (AT_CLKTCK of getauxval(3)) and 100 on every architecture Go has for Linux, whatever CONFIG_HZ says.
const userHZ = 100

const nanosPerTick = 1000000000 / userHZ

// growth returns cur - prev, unknown if either is unknown or the counter went backwards: a device was replaced, a pid reused.
func growth(cur, prev uint64) uint64 {
	if cur == unknown || prev == unknown || cur < prev {
		return unknown
	}
	return cur - prev
}

// growth32 is growth of a counter that the kernel keeps in 32 bits and that wraps.
func growth32(cur, prev uint64) uint64 {
	if cur == unknown || prev == unknown {
		return unknown
	}
	return uint64(uint32(cur) - uint32(prev))
}

// sum adds counters; unknown if one of them is.
func sum(counters ...uint64) (total uint64) {
	for _, c := range counters {
		if c == unknown {
			return unknown
		}
		total += c
	}
	return total
}

// perSecond returns delta per second over a window in nanoseconds; NaN for an unknown delta and for an empty window.
func perSecond(delta, window uint64) float32 {
	if delta == unknown || window == 0 {
		return nan
	}
	return float32(float64(delta) * 1e9 / float64(window))
}

// cores turns ticks of CPU time spent within a window of nanoseconds into a mean number of cores.
func cores(ticks, window uint64) float32 { return perSecond(ticks, window) / userHZ }

// share returns part of whole, 0-1; NaN if either is unknown or whole is 0. Counters read one after the other may
// overshoot a little, so it is cut at 1.
func share(part, whole uint64) float32 {
	if part == unknown || whole == unknown || whole == 0 {
		return nan
	}
	return float32(min(1, float64(part)/float64(whole)))
}

// known32 returns v for a field of 32 bits, unknown if it does not fit.
func known32(v uint64) uint32 {
	if v >= recording.Unknown32 {
		return recording.Unknown32
	}
	return uint32(v)
}

// overMillis returns the share of a window of nanoseconds that a wrapping 32-bit counter of milliseconds grew by.
func overMillis(cur, prev, window uint64) float32 {
	d := growth32(cur, prev)
	if d == unknown {
		return nan
	}
	return share(d*1e6, window)
}

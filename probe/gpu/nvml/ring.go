//go:build linux && cgo

package nvml

import (
	"encoding/binary"
	"math"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/clock"
)

// utilRing reads GPU-util from the driver's ring of samples, which has more of them than polling would.
type utilRing struct {
	seen uint64 // newest time stamp so far, µs of the wall clock
}

func (u *utilRing) start() { u.seen = clock.Real() / 1000 }

// since returns the mean of the samples that are new, 0-1, NaN if there is none. GPUs in MIG mode have none.
func (u *utilRing) since(l *library, h *handle) float32 {
	if h.parent != nil || !l.has("nvmlDeviceGetSamples") {
		return unknown
	}
	if now := clock.Real() / 1000; u.seen > now { // the wall clock was set back
		u.seen = now
	}
	kind, samples, r := h.device.GetSamples(bind.GPU_UTILIZATION_SAMPLES, u.seen)
	if r != bind.SUCCESS {
		return unknown
	}
	sum, n := 0.0, 0.0
	for _, s := range samples {
		percent := number(kind, s.SampleValue)
		if s.TimeStamp <= u.seen || !(percent >= 0 && percent <= 100) {
			continue
		}
		sum, n = sum+percent, n+1
	}
	for _, s := range samples {
		u.seen = max(u.seen, s.TimeStamp)
	}
	if n == 0 {
		return unknown
	}
	return float32(sum / n / 100)
}

// number reads a value of the type that the driver names (nvmlValue_t), NaN for a type that is not known: the bits of one are no value of
// another.
func number(kind bind.ValueType, value [8]byte) float64 {
	bits := binary.LittleEndian.Uint64(value[:])
	switch kind {
	case bind.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits)
	case bind.VALUE_TYPE_UNSIGNED_INT:
		return float64(uint32(bits))
	case bind.VALUE_TYPE_UNSIGNED_LONG, bind.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(bits)
	case bind.VALUE_TYPE_SIGNED_INT:
		return float64(int32(bits))
	case bind.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits))
	}
	return math.NaN()
}

//go:build linux && cgo

package nvml

import (
	"encoding/binary"

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
	_, samples, r := h.device.GetSamples(bind.GPU_UTILIZATION_SAMPLES, u.seen)
	if r != bind.SUCCESS {
		return unknown
	}
	sum, n := uint64(0), uint64(0)
	for _, s := range samples {
		percent := uint64(binary.LittleEndian.Uint32(s.SampleValue[:]))
		if s.TimeStamp <= u.seen || percent > 100 {
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
	return float32(float64(sum) / float64(n) / 100)
}

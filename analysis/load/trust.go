package load

// Bounds of what a reading can be. What lies beyond is a blank that leaked: 2^47 and 2^63 of DCGM, all bits set of NVML
// (NVIDIA/go-dcgm issue 75, slurm-job-exporter issue 53).
const (
	mostWatts = 1e5
	mostHertz = 1e11
	mostBytes = 1e15
	mostRate  = 1e13 // bytes/s
)

// Bounds of what contradicts itself. One warp on one of 132 SMs reads 0.0076.
const (
	nothingActive = 0.002
	busyAllTime   = 0.9
	someTensor    = 0.05
	rounding      = 1.02
)

// within returns a reading that can be, NaN for others.
func within(v, most float32) float32 {
	if !(v >= 0 && v <= most) {
		return nan
	}
	return v
}

// check marks a window untrusted that no device can show:
//   - a ratio above 1: a blank that leaked, a MIG slice counted wrongly (NVIDIA/DCGM issue 152); a little above 1 is rounding;
//   - no SM active while a kernel was there nearly all the time, or while tensor pipes were busy: the profiling counters have stopped
//     (issue 303, after Xid 31; dcgm-exporter issue 662, for weeks).
//
// Sources do the same; a recording may be of a stranger.
func (w *Window) check() {
	for _, r := range []*float32{&w.SM, &w.Resident, &w.Tensor, &w.DRAM, &w.Copy, &w.FP32, &w.Occupancy} {
		switch v := *r; {
		case v != v:
		case v < 0 || v > rounding:
			*r = nan
			w.Untrusted = true
		case v > 1:
			*r = 1
		}
	}
	if w.SM < nothingActive && (w.Resident >= busyAllTime || w.Tensor > someTensor) {
		w.Untrusted = true
	}
}

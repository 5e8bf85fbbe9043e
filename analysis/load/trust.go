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
//   - no SM active while tensor pipes were busy.
//
// Sources do the same; a recording may be of a stranger.
func (w *Window) check() {
	for _, r := range []*float32{&w.SM, &w.Resident, &w.Tensor, &w.DRAM, &w.Copy, &w.FP32} {
		switch v := *r; {
		case v != v:
		case v < 0 || v > rounding:
			*r = nan
			w.Untrusted, w.impossible = true, true
		case v > 1:
			*r = 1
		}
	}
	if w.SM < nothingActive && w.Tensor > someTensor {
		w.Untrusted, w.impossible = true, true
	}
}

// utilReach is how far back GPU-util looks at most: a sixth of a second to a second, by product (nvml.h, nvmlUtilization_t).
const utilReach = 1_000_000_000

// stopped finds windows in which no SM was active while a kernel was there nearly all the time: the profiling counters have stopped
// (NVIDIA/DCGM issue 303, after Xid 31; dcgm-exporter issue 662, for weeks), or each of two groups is counted half of the time (issue 169).
//
// GPU-util is of a time that reaches back, so it stays high for a while when the work ends, and over a short pause. What no SM did in that
// time must fit into what GPU-util leaves, give or take a window:
//
//	SM        |  0.9 |  0.9 |   0  |   0  |          GPU-util 0.92 in the third: the pause is an eighth of its reach
//	SM        |   0  |   0  |   0  |   0  |          GPU-util 1 throughout: the counters have stopped
func stopped(windows []Window) {
	first, zero := 0, int64(0)
	for i := range windows {
		w := &windows[i]
		if w.SM < nothingActive {
			zero += w.End - w.Begin
		}
		for ; windows[first].End <= w.End-utilReach; first++ {
			if windows[first].SM < nothingActive {
				zero -= windows[first].End - windows[first].Begin
			}
		}
		if !(w.SM < nothingActive && w.Resident >= busyAllTime) || w.impossible {
			continue
		}
		reach := min(zero, utilReach)
		room := int64((1-w.Resident)*utilReach) + min(w.End-w.Begin, utilReach/4)
		w.Untrusted = reach > room
	}
}

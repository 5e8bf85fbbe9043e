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
//
// That shows after a few windows, and holds for all of them that lie in the reach: those before it showed are as wrong.
func stopped(windows []Window) {
	first, judged, zero := 0, 0, int64(0)
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
		if !w.hollow() {
			continue
		}
		reach := min(zero, utilReach)
		room := int64((1-w.Resident)*utilReach) + min(w.End-w.Begin, utilReach/4)
		if w.Untrusted = reach > room; !w.Untrusted {
			continue
		}
		for judged = max(judged, first); judged < i; judged++ {
			if before := &windows[judged]; before.hollow() {
				before.Untrusted = true
			}
		}
	}
}

// halted finds longer times in which no SM was active and kernels were there for a part: what no SM did must fit into what GPU-util
// leaves of those seconds, give or take its lag at both ends.
//
//	SM        |   0  |   0  |   0  |   0  |   0  |   GPU-util 0.8 throughout: the counters have stopped
func halted(windows []Window) {
	const span = 5e9
	first, judged, zero, left := 0, 0, int64(0), int64(0)
	for i := range windows {
		w := &windows[i]
		zero, left = zero+w.zero(), left+w.left()
		for ; windows[first].End <= w.End-span; first++ {
			zero, left = zero-windows[first].zero(), left-windows[first].left()
		}
		if w.zero() == 0 || zero <= left+2*utilReach {
			continue
		}
		for judged = max(judged, first); judged <= i; judged++ {
			if before := &windows[judged]; before.zero() > 0 {
				before.Untrusted = true
			}
		}
	}
}

// zero is how long no SM was active, in ns.
func (w *Window) zero() int64 {
	if w.SM < nothingActive {
		return w.End - w.Begin
	}
	return 0
}

// left is how long no kernel may have been there, in ns: all the time where that is not known.
func (w *Window) left() int64 {
	if w.Resident != w.Resident {
		return w.End - w.Begin
	}
	return int64(float64(1-w.Resident) * float64(w.End-w.Begin))
}

// hollow reports a window in which kernels were there and no SM was active, that is possible for itself.
func (w *Window) hollow() bool {
	return w.SM < nothingActive && w.Resident >= busyAllTime && !w.impossible
}

package ledger

import "math"

// book books the states of one window, or of a gap between windows (w is nil).
//
// A counter tells how long kernels were resident in the whole window, not when. That part is taken from the time in which the
// process was busy, the only time the job meant the GPU to work; what is left of that time is the host's.
func (t *Totals) book(w *Window, in *[states]int64) {
	allocated := int64(0)
	for _, n := range in {
		allocated += n
	}
	if allocated == 0 {
		return
	}
	t.Allocated += allocated
	trusted := w != nil && w.trusted()
	if trusted {
		t.Covered += allocated
	}
	// A process that is not seen holding the GPU while kernels run or its device clock ticks lives in another PID namespace.
	if w != nil && w.HeldKnown && !w.Held && !(w.Resident > 0) && in[Exposed] == 0 {
		t.NS[NotHeld] += allocated
		return
	}
	t.NS[Startup] += in[Starts]
	t.NS[EpochStart] += in[EpochOpens]
	t.NS[ExposedWait] += in[Exposed]
	t.NS[Validation] += in[Validates]
	t.NS[Checkpoint] += in[Saves]
	t.NS[Unattributed] += in[Wait]
	t.WaitUpperBound += in[Wait]
	busy, idle := in[Busy], in[Idle]
	if !trusted {
		t.NS[Unattributed] += busy + idle
		return
	}
	resident := share(w.Resident, allocated)
	compute := min(busy, resident)
	idling := min(idle, resident-compute) // no sign of life, yet kernels run: it computes
	t.NS[Compute] += compute + idling
	copied := min(busy-compute, share(w.Copy, allocated)) // at most: copies may run beside kernels
	t.NS[Copy] += copied
	t.NS[Host] += busy - compute - copied
	if w.HeldKnown && w.Held {
		t.NS[IdleHeld] += idle - idling
	} else {
		t.NS[Unattributed] += idle - idling
	}
}

// share is a ratio of a time; a ratio that is not known is none.
func share(ratio float32, of int64) int64 {
	if !(ratio > 0) {
		return 0
	}
	return min(of, int64(math.Round(float64(ratio)*float64(of))))
}

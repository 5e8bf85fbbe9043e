// From entries to windows.
//
//	kernels   ──████████──────██████████████████──   each with its SM activity
//	copies    ──────────██████──────────────────██
//	windows   │     0     │     1     │     2     │   aligned to the clock: window n is [n·Δ, (n+1)·Δ)
//
// Kernels do not overlap each other, nor do copies; so within a window the busy time of each is a sum of overlaps and never
// more than Δ. Where the log contradicts itself the window is untrusted and its ratios are unknown: never a ratio above 1,
// and never one that was cut to fit.

package emulated

import (
	"errors"
	"math"

	"github.com/datawait/datawait/probe/recording"
)

// sample reads what was appended up to now and closes the windows that ended by the horizon.
func (d *device) sample(now, horizon uint64, locked func() locks, windows *[]recording.GPU) error {
	cut := d.log.look()
	if cut == nil {
		cut = errors.Join(d.checkLength(now), d.checkName())
	}
	for range maxWindows {
		backlog, err := d.read(now)
		if err != nil {
			return err
		}
		if d.begin()+d.interval > horizon {
			break
		}
		*windows = append(*windows, d.close(backlog, locked))
	}
	return cut
}

// close returns the next window and lets go of the entries and doubts that ended in it.
func (d *device) close(backlog bool, locked func() locks) recording.GPU {
	from := d.begin()
	to := from + d.interval
	kernels, copies := d.lanes[0].take(from, to), d.lanes[1].take(from, to)
	unknown := float32(math.NaN())
	w := recording.GPU{Ref: d.ref(), Flags: recording.GPUEmulated, Begin: from, End: to,
		SM: ratio(kernels.sm, d.interval), Tensor: ratio(kernels.tensor, d.interval),
		Resident: ratio(kernels.busy, d.interval), Copy: ratio(copies.busy, d.interval),
		DRAM: unknown, Power: unknown, SMClock: unknown, Memory: unknown}
	if to <= d.header.Created {
		w.Flags |= recording.GPUHeldKnown // and not held: it was not there
	} else {
		w.Flags |= d.held(locked, kernels.busy+copies.busy > 0)
	}
	if d.doubted(from, to) || backlog {
		w.Flags |= recording.GPUUntrusted
		w.SM, w.Tensor, w.Resident, w.Copy = unknown, unknown, unknown, unknown
	}
	d.window++
	return w
}

// work is what one engine did in one window.
type work struct {
	busy       float64 // ns
	sm, tensor float64 // ns, weighted with the activity
}

// take sums the lane's overlap with [from, to) and drops the entries that ended by to.
func (l *lane) take(from, to uint64) (w work) {
	ended := 0
	for _, e := range l.queued {
		if e.Start >= to {
			break
		}
		if e.End <= to {
			ended++ // entries are in order: all before it ended too
		}
		overlap := float64(min(e.End, to)) - float64(max(e.Start, from))
		if overlap <= 0 {
			continue
		}
		w.busy += overlap
		w.sm += overlap * float64(e.SM)
		w.tensor += overlap * float64(e.Tensor)
	}
	l.queued = l.queued[ended:]
	if len(l.queued) == 0 {
		l.queued = nil
	}
	return w
}

// doubted reports whether [from, to) touches a doubt, and forgets those that ended.
func (d *device) doubted(from, to uint64) (yes bool) {
	kept := d.doubts[:0]
	for _, s := range d.doubts {
		yes = yes || s.from < to && s.to > from
		if s.to > to {
			kept = append(kept, s)
		}
	}
	d.doubts = kept
	return yes
}

// ratio divides a busy time by the window. The quotient is at most 1 but for the rounding of a sum of many overlaps.
func ratio(busy float64, interval uint64) float32 {
	return float32(min(busy/float64(interval), 1))
}

package dcgm

import (
	"math"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// assembler turns the samples of one entity into counter windows.
//
// A sample of SM activity makes a window: it is the mean over the engine's update interval up to its time stamp. That interval
// is what the samples show, not what was asked for: a watch is shared, and the shortest wish of any client counts. Other fields
// belong to the window in which their sample lies. A sample may come late, out of order and more than once: each time stamp
// of a field counts once, and a window is closed only when what is still under way has had its time.
//
// The first sample makes no window, as nothing says since when it counts.
type assembler struct {
	asked  int64 // ns, the interval we asked for
	settle int64 // ns that a window is kept open for samples out of order: one that comes later is lost

	samples map[uint16][]sample // by field, in the order they came: few, as what is settled is forgotten
	emitted int64               // end of the newest window closed
	newest  int64               // the newest sample of SM activity
	gaps    [9]int64            // ns between the newest samples of SM activity, a ring
	gapped  int
	slow    int // gaps in a row that were as long as what we asked for
}

// sample is one value, its time stamp and its time on our clock.
type sample struct {
	us int64 // the engine's
	t  int64 // ns
	v  float64
}

func newAssembler(asked int64) *assembler {
	return &assembler{asked: asked, settle: max(2*asked, 200e6), samples: map[uint16][]sample{}}
}

// overlap is how far before what was seen a read begins anew: what settles may still come there.
func (a *assembler) overlap() int64 { return a.settle + a.asked }

// has reports whether the sample of this time stamp (the engine's, µs) was taken before.
func (a *assembler) has(field uint16, us int64) bool {
	return slices.ContainsFunc(a.samples[field], func(s sample) bool { return s.us == us })
}

// add takes one sample that was not taken before. It reports whether the sample still counts: one of SM activity does not, once later windows were closed without it.
func (a *assembler) add(field uint16, s sample) bool {
	a.samples[field] = append(a.samples[field], s)
	if field != fieldSM {
		return true
	}
	a.newest = max(a.newest, s.t)
	return s.t > a.emitted
}

// patience is how long a window waits at most for what is newer than it (ns).
const patience = 5e9

// close returns the windows that have settled, oldest first: all samples may be late, but not one much later than the next.
func (a *assembler) close(ref uint16, now int64) (windows []recording.GPU, pipes []recording.GPUPipes) {
	settled := max(min(a.newest, now)-a.settle, now-a.settle-patience)
	times := a.times()
	for i, t := range times {
		if t <= a.emitted || t > settled {
			continue
		}
		if i > 0 {
			length := a.length(t - times[i-1])
			w, p := a.window(ref, t-length, t)
			windows = append(windows, w)
			if p.known() {
				pipes = append(pipes, p.GPUPipes)
			}
		}
		a.emitted = t
	}
	return windows, pipes
}

// times returns when SM activity was sampled, in order.
func (a *assembler) times() []int64 {
	times := make([]int64, 0, len(a.samples[fieldSM]))
	for _, s := range a.samples[fieldSM] {
		times = append(times, s.t)
	}
	slices.Sort(times)
	return times
}

// length returns how long a window is whose sample comes gap after the one before: the gap, unless samples are missing in
// between. Then it is the usual gap. Gaps of what we asked for, one after the other, are no loss: who wished for a shorter interval is gone.
func (a *assembler) length(gap int64) int64 {
	const sure = 3
	usual := a.usual()
	if gap > usual*3/2 {
		if abs(gap-a.asked) > a.asked/8 {
			a.slow = 0
		} else if a.slow++; a.slow >= sure {
			a.gapped, a.slow = 0, 0
			return gap
		}
		return usual
	}
	a.slow = 0
	a.gaps[a.gapped%len(a.gaps)] = gap
	a.gapped++
	return gap
}

// usual is the median of the last gaps, at first what was asked for.
func (a *assembler) usual() int64 {
	n := min(a.gapped, len(a.gaps))
	if n < 3 {
		return a.asked
	}
	return median(slices.Clone(a.gaps[:n]))
}

func median(v []int64) int64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// furtherPipes is what a GPU-PIPES record holds, if anything.
type furtherPipes struct{ recording.GPUPipes }

func (p furtherPipes) known() bool {
	for _, v := range []float32{p.Engine, p.Occupancy, p.FP32, p.PCIeIn, p.PCIeOut, p.NVLinkIn, p.NVLinkOut} {
		if v == v {
			return true
		}
	}
	return false
}

func (a *assembler) window(ref uint16, begin, end int64) (recording.GPU, furtherPipes) {
	in := func(field uint16, scale float64) float32 { return float32(a.near(field, begin, end) * scale) }
	w := recording.GPU{Ref: ref, Begin: uint64(begin), End: uint64(end),
		SM: in(fieldSM, 1), Resident: in(fieldUtil, 0.01), Tensor: in(fieldTensor, 1), DRAM: in(fieldDRAM, 1), Copy: float32(math.NaN()),
		Power: in(fieldPower, 1), SMClock: in(fieldSMClock, 1e6), Memory: in(fieldUsed, 1<<20)}
	p := furtherPipes{recording.GPUPipes{Ref: ref, Begin: w.Begin, End: w.End,
		Engine: in(fieldEngine, 1), Occupancy: in(fieldOccupancy, 1), FP32: in(fieldFP32, 1), PCIeIn: in(fieldPCIeIn, 1),
		PCIeOut: in(fieldPCIeOut, 1), NVLinkIn: in(fieldNVLinkIn, 1), NVLinkOut: in(fieldNVLinkOut, 1)}}
	return w, p
}

// near returns the sample of a field that belongs to a window, NaN if it has none: the nearest to its end, not further off than half
// the window; what another loop of the engine stamps may be a window off.
func (a *assembler) near(field uint16, begin, end int64) float64 {
	best, distance := math.NaN(), (end-begin)/2
	if slices.Contains(device, field) {
		distance = end - begin
	}
	for _, s := range a.samples[field] {
		if d := abs(s.t - end); d <= distance {
			best, distance = s.v, d
		}
	}
	return best
}

// forget drops the samples of some fields that no read brings again (stamped before us, the engine's time) and no window needs: those to
// come begin where the newest closed one ended. What is older than oldest (our time) goes in any case, but for that end.
func (a *assembler) forget(fields []uint16, us, oldest int64) {
	for _, field := range fields {
		a.samples[field] = slices.DeleteFunc(a.samples[field], func(s sample) bool {
			if field == fieldSM && s.t == a.emitted {
				return false
			}
			return s.t < oldest || s.us < us && s.t < a.emitted-a.asked
		})
	}
}

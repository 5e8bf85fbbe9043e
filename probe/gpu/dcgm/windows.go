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
type assembler struct {
	asked   int64 // ns, the interval we asked for
	overlap int64 // ns that are read anew at each poll: a sample may come so late and still be seen
	settle  int64 // ns after which a window is closed

	samples map[uint16]map[int64]sample // by field and time stamp of the engine; those younger than overlap
	emitted int64                       // end of the newest window closed
	gaps    [9]int64                    // ns between the newest samples of SM activity, a ring
	gapped  int

	late uint64 // samples that came after their window was closed
}

// sample is one value and its time on our clock.
type sample struct {
	t int64
	v float64
}

func newAssembler(asked int64) *assembler {
	return &assembler{asked: asked, overlap: max(3*asked, 2e9), settle: max(2*asked, 250e6), samples: map[uint16]map[int64]sample{}}
}

// has reports whether the sample of this time stamp (the engine's, µs) was taken before.
func (a *assembler) has(field uint16, us int64) bool {
	_, ok := a.samples[field][us]
	return ok
}

// add takes one sample. One whose window was closed without it is counted, and makes no window.
func (a *assembler) add(field uint16, us int64, s sample) {
	if a.samples[field] == nil {
		a.samples[field] = map[int64]sample{}
	}
	a.samples[field][us] = s
	if field == fieldSM && s.t <= a.emitted {
		a.late++
	}
}

// close returns the windows that ended before now less the time to settle, oldest first, and forgets what no read can bring again.
func (a *assembler) close(ref uint16, now int64) (windows []recording.GPU, pipes []recording.GPUPipes) {
	times := a.times()
	for i, t := range times {
		if t <= a.emitted || t > now-a.settle {
			continue
		}
		if i == 0 { // what it is the mean of is known only after the next
			a.emitted = t
			continue
		}
		length := a.length(t - times[i-1])
		w, p := a.window(ref, t-length, t)
		windows = append(windows, w)
		if p.known() {
			pipes = append(pipes, p.GPUPipes)
		}
		a.emitted = t
	}
	a.forget(now - a.overlap)
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
// between. Then it is the usual gap.
func (a *assembler) length(gap int64) int64 {
	usual := a.usual()
	if gap > usual*3/2 {
		return usual
	}
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

// near returns the sample of a field that belongs to a window, NaN if it has none: the nearest to its end, not older than it is long.
func (a *assembler) near(field uint16, begin, end int64) float64 {
	best, distance := math.NaN(), (end-begin)/2
	if field == fieldUtil || field == fieldPower || field == fieldSMClock || field == fieldUsed {
		distance = end - begin // stamped by another loop of the engine
	}
	for _, s := range a.samples[field] {
		if d := abs(s.t - end); d <= distance {
			best, distance = s.v, d
		}
	}
	return best
}

// forget drops samples older than what a read returns again, but keeps the newest that was used: the next window begins there.
func (a *assembler) forget(oldest int64) {
	for field, of := range a.samples {
		for us, s := range of {
			if s.t < oldest && (field != fieldSM || s.t < a.emitted) {
				delete(of, us)
			}
		}
	}
}

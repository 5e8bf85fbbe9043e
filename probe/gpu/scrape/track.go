package scrape

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// track follows one GPU from page to page.
//
// A page has no time stamps, and an exporter repeats a value until it has collected the next: every 30 s, unless it is told otherwise.
// So a sample is a change of values, found at the look that shows it; a look that shows the old ones is no sample. What changed between
// two looks is given one more look to settle, because the fields of one collection do not all arrive at once. Profiling counters have six
// decimals: while they stay the same and are not all 0, it is the old sample, whatever else changes.
//
//	looks     | | | | | | | | | | |     every second at first, then every tenth of the interval
//	values    a a a b b b b c c c c
//	windows         ?       [---c]       b's beginning was not seen
//
// A value is the mean over the exporter's interval up to its sample, so its window is as long as the usual distance of changes, and
// never longer than the time since the one before.
type track struct {
	device gpu.Device
	values
	counts  bool   // SM activity was seen
	first   uint64 // ns, the first look
	changed uint64 // ns, the last look that showed other values; at first the first look
	sampled uint64 // ns, the last look that showed a new sample; 0 = none did
	pending bool   // values have not settled
	updated uint64 // ns, end of the last window, made or not; 0 = none
	gaps    [5]uint64
	gapped  int
	long    int // gaps in a row that were longer than usual

	holders []recording.Holder // as told; nil = nothing was told, or it is not known any more
	shared  bool
}

// look takes the values of one page, and returns the window that ended, if one did.
func (t *track) look(v values, now uint64) (begin, end uint64, ended bool) {
	if t.changed == 0 {
		t.values, t.changed, t.first = v, now, now
		return 0, 0, false
	}
	changed, counted := v.differ(&t.values, 0), v.differ(&t.values, profiling)
	t.values = v
	if changed {
		t.changed = now
	}
	if counted || changed && v.still() {
		t.sampled = now
	}
	if !t.pending {
		t.pending = changed
		return 0, 0, false
	}
	t.pending = false
	before := t.updated
	if t.sampled <= before {
		return 0, 0, false // another client lets the engine read power and the like more often
	}
	t.updated = t.sampled
	if before == 0 {
		return 0, 0, false
	}
	length := t.length(t.updated - before)
	return t.updated - length, t.updated, length > 0
}

// length returns how long the window of a sample is that came gap after the one before, 0 if that cannot be told yet: where an energy
// counter moves every collection shows, else values may have stayed the same for a while.
func (t *track) length(gap uint64) uint64 {
	const sure = 3
	usual := t.usual()
	if usual != 0 && gap > usual*3/2 {
		if t.long++; t.long < sure {
			return usual
		}
		t.gapped = 0 // the exporter has another interval now
	}
	t.long = 0
	t.gaps[t.gapped%len(t.gaps)] = gap
	t.gapped++
	if usual == 0 && math.IsNaN(t.values[fieldEnergy]) {
		return 0
	}
	return gap
}

// usual is the median distance of samples, 0 before there were two.
func (t *track) usual() uint64 {
	n := min(t.gapped, len(t.gaps))
	if n == 0 {
		return 0
	}
	gaps := slices.Clone(t.gaps[:n])
	slices.Sort(gaps)
	return gaps[n/2]
}

// old is after what time without a change an exporter is said to repeat itself: three times its default interval, or what it shows.
func (t *track) old() uint64 { return max(3*t.usual(), uint64(90*time.Second)) }

// news is when the last sample was seen, or the first look.
func (t *track) news() uint64 { return cmp.Or(t.sampled, t.first) }

// window makes the records of one window. Copy engines are not on a page.
func (t *track) window(begin, end uint64) (recording.GPU, recording.GPUPipes, bool) {
	f := func(at field) float32 { return float32(t.values[at]) }
	w := recording.GPU{Ref: t.device.Ref, Begin: begin, End: end, SM: f(fieldSM), Resident: f(fieldUtil), Tensor: f(fieldTensor), DRAM: f(fieldDRAM),
		Copy: float32(math.NaN()), Power: f(fieldPower), SMClock: f(fieldClock), Memory: f(fieldMemory)}
	p := recording.GPUPipes{Ref: t.device.Ref, Begin: begin, End: end, Engine: f(fieldEngine), Occupancy: f(fieldOccupancy), FP32: f(fieldFP32),
		PCIeIn: f(fieldPCIeIn), PCIeOut: f(fieldPCIeOut), NVLinkIn: f(fieldNVLinkIn), NVLinkOut: f(fieldNVLinkOut)}
	trusted := gpu.Contradiction(w, &p) == ""
	if !trusted {
		w.Flags |= recording.GPUUntrusted
	}
	return w, p, trusted
}

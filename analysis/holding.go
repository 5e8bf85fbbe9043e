package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
)

// What shows that somebody uses a GPU of which no process is listed: a container hides the processes of others, and a context may
// outlive its process (F78). Without a context the driver keeps a few hundred MiB for itself.
const (
	inUse     = 0.02            // kernels resident, or SM activity
	ownMemory = 1.5 * (1 << 30) // bytes

	betweenLooks = 15e9 // ns: who has a context is asked every ten seconds, or a little later
)

// holding is when some process had a context on the GPU and when none had; of other times it is not known.
//
//	looks     1   1   0   0   1        who has a context is asked every ten seconds
//	held      [---]            |
//	free              [---]             nobody at both ends, and no use in between
//	rank          [----------]          it initialised CUDA, and ended
//	kernels   | | |  | | |     | |      who runs kernels holds it, and in between as long as nobody looks longer than between two looks
type holding struct {
	held, free spans
	hidden     int64 // nobody was listed, and somebody used it
	looked     bool  // processes were listed
	grade      stat.Grade
	source     string
}

// hold finds out when the GPU was held, and tells the windows that do not know.
func (d *device) hold() {
	h := holding{looked: len(d.Looks) > 0, grade: stat.GradeB, source: "CUDA seen initialised"} // one source, or seconds coarse
	if h.looked || len(d.listed()) > 0 {
		h.source = "list of processes"
	}
	var held, free spans // windows are in order, so neighbours become one
	known := false       // the windows say it themselves
	for i := range d.Windows {
		if w := &d.Windows[i]; w.Known {
			known = true
			h.grade, h.source = d.grade, d.counters()
			if w.Holds {
				held = held.add(w.Begin, w.End)
			} else {
				free = free.add(w.Begin, w.End)
			}
		}
	}
	used := d.used()
	var none []span
	for i := 1; i < len(d.Looks); i++ {
		before, now := &d.Looks[i-1], &d.Looks[i]
		if now.Since == load.Unknown || before.At < now.Since {
			continue // nobody looked in between
		}
		switch s := (span{before.At, now.At}); {
		case before.Processes > 0 && now.Processes > 0:
			held = append(held, s)
		case before.Processes > 0 || now.Processes > 0:
		case used.overlap(s.begin, s.end) > 0:
			h.hidden += s.end - s.begin
		default:
			none = append(none, s)
		}
	}
	if h.hidden == 0 { // else the list shows no process that is there
		free = append(free, none...)
	}
	h.held = union(slices.Concat(held, d.initialised(), d.listed()))
	if ran := d.ran(); !known && h.hidden == 0 && len(ran) > 0 {
		if len(h.held) == 0 {
			h.grade, h.source = stat.GradeC, "kernels that ran"
		}
		h.held = d.bridged(append(ran, h.held...))
	}
	h.free = union(free).minus(h.held)
	d.holding = h
	d.tellWindows()
}

// ran is when kernels ran. Who runs one has a context.
func (d *device) ran() (all spans) {
	for i := range d.Windows {
		if w := &d.Windows[i]; !w.Untrusted && (w.Resident > inUse || w.SM > inUse) {
			all = all.add(w.Begin, w.End)
		}
	}
	return all
}

// bridged joins signs of a holder that are no further apart than two looks at processes may be, unless one in between found nobody.
func (d *device) bridged(signs []span) (held spans) {
	var empty []int64 // looks that found nobody, in order
	for _, l := range d.Looks {
		if l.Processes > 0 {
			signs = append(signs, span{l.At, l.At + 1})
		} else {
			empty = append(empty, l.At)
		}
	}
	nobody := func(s span) bool {
		i, _ := slices.BinarySearch(empty, s.begin)
		return i < len(empty) && empty[i] <= s.end
	}
	for _, s := range union(signs) {
		if n := len(held); n > 0 && s.begin-held[n-1].end <= betweenLooks && !nobody(span{held[n-1].end, s.begin}) {
			held[n-1].end = s.end
			continue
		}
		held = append(held, s)
	}
	return held
}

// initialised is when ranks that said to be on this GPU had CUDA initialised.
func (d *device) initialised() (all []span) {
	for _, k := range d.ranks {
		if k.joined != stat.GradeA {
			continue
		}
		for _, m := range k.Marks {
			if m.Code == recording.MarkCUDA {
				all = append(all, span{m.Begin, max(k.End, k.Gone)})
				break
			}
		}
	}
	return all
}

// listed is when whoever finds out about allocations found processes with a context, from one note to the next.
func (d *device) listed() (all []span) {
	since := load.Unknown
	for _, a := range d.Allocations {
		if a.By != recording.AllocatedByProcesses {
			continue
		}
		if since != load.Unknown {
			all = append(all, span{since, max(since, min(int64(a.Since), int64(a.T)))})
		}
		since = load.Unknown
		if len(a.Holders) > 0 {
			since = int64(a.T)
		}
	}
	if since != load.Unknown {
		all = append(all, span{since, d.Node.End})
	}
	return all
}

// used is when counters or the driver show that somebody uses the GPU.
func (d *device) used() spans {
	var all spans
	for i := range d.Windows {
		if w := &d.Windows[i]; w.Resident > inUse || w.SM > inUse {
			all = all.add(w.Begin, w.End)
		}
	}
	for i := range d.States.Len() {
		begin, end, _, memory := d.States.At(i, load.StateMemory)
		if _, _, _, resident := d.States.At(i, load.StateResident); memory > ownMemory || resident > inUse {
			all = append(all, span{begin, end})
		}
	}
	return union(all)
}

func (d *device) tellWindows() {
	for i := range d.Windows {
		w := &d.Windows[i]
		if w.Known {
			continue
		}
		if middle := w.Begin + (w.End-w.Begin)/2; d.holding.held.holds(middle) {
			w.Known, w.Holds = true, true
		} else if d.holding.free.holds(middle) {
			w.Known = true
		}
	}
}

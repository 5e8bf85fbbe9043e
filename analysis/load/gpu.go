package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// feed is a stream that tells of a GPU, by the numbers it gives it.
type feed struct {
	source
	refs []uint16
}

// gpu returns the node's device of that UUID: two agents, one after the other, saw the same one.
func (n *Node) gpu(note recording.GPUNote) *GPU {
	for _, g := range n.GPUs {
		if g.Note.UUID == note.UUID && note.UUID != "" {
			g.Note = note
			return g
		}
	}
	g := &GPU{Node: n, Note: note}
	n.GPUs = append(n.GPUs, g)
	return g
}

// gpu surveys one window: it finds the device, and sees when the window was.
func (a *agentFold) gpu(rec *recording.Record) bool {
	begin, end, ok := span(rec.Times())
	if !ok || begin == end {
		return false
	}
	g := a.gpus[rec.Ref()]
	if g == nil { // its note was lost
		g = a.node.gpu(recording.GPUNote{GPU: rec.Ref(), Emulated: rec.Flags()&recording.GPUEmulated != 0})
		a.gpus[rec.Ref()] = g
	}
	g.Emulated = g.Emulated || rec.Flags()&recording.GPUEmulated != 0
	g.windows++
	a.node.seen(begin, end)
	return true
}

// feed tells the devices that they are spoken of in this stream.
func (a *agentFold) feed() {
	refs := map[*GPU][]uint16{}
	for ref, g := range a.gpus {
		refs[g] = append(refs[g], ref)
	}
	for g := range refs {
		slices.Sort(refs[g])
		g.feeds = append(g.feeds, feed{a.source, refs[g]})
	}
}

// Load reads the counter windows of the device, into memory of the room until Unload. Reading has those that contradict one another;
// the others' the survey counted.
func (g *GPU) Load(room *Room) (all Reading, err error) {
	g.Windows = room.windows(g.windows)
	for _, f := range g.feeds {
		if _, err := f.read(func(records []recording.Record) { g.take(records, f.refs) }); err != nil {
			return all, err
		}
	}
	g.Windows = disjoint(g.Windows, &all.Bad)
	return all, nil
}

// Unload forgets the windows.
func (g *GPU) Unload(room *Room) {
	room.spareWindows = append(room.spareWindows, g.Windows)
	g.Windows = nil
}

func (g *GPU) take(records []recording.Record, refs []uint16) {
	for i := range records {
		rec := &records[i]
		if rec.Kind() != recording.KindGPU || !slices.Contains(refs, rec.Ref()) {
			continue
		}
		v := rec.GPU()
		begin, end, ok := span(v.Begin, v.End)
		if !ok || begin == end {
			continue
		}
		w := Window{Begin: begin, End: end,
			SM: v.SM, Resident: v.Resident, Tensor: v.Tensor, DRAM: v.DRAM, Copy: v.Copy,
			Power: amount(v.Power), Clock: amount(v.SMClock), Memory: amount(v.Memory),
			Emulated: v.Flags&recording.GPUEmulated != 0, Untrusted: v.Flags&recording.GPUUntrusted != 0,
			Known: v.Flags&recording.GPUHeldKnown != 0, Holds: v.Flags&recording.GPUHeld != 0}
		w.check()
		g.Windows = append(g.Windows, w)
	}
}

// check marks a window untrusted whose ratios no device can show: a blank that leaked, a MIG slice above 1. A little above 1 is
// rounding.
func (w *Window) check() {
	for _, r := range []*float32{&w.SM, &w.Resident, &w.Tensor, &w.DRAM, &w.Copy} {
		switch v := *r; {
		case v != v:
		case v < 0 || v > 1.02:
			*r = nan
			w.Untrusted = true
		case v > 1:
			*r = 1
		}
	}
}

// disjoint orders windows and takes from each what an earlier one already covers; what is left of none is dropped.
func disjoint(windows []Window, bad *uint64) []Window {
	less := func(a, b Window) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End)) }
	if !slices.IsSortedFunc(windows, less) {
		slices.SortStableFunc(windows, less)
	}
	kept := windows[:0]
	end := Unknown
	for _, w := range windows {
		if w.End <= end {
			*bad++
			continue
		}
		w.Begin = max(w.Begin, end)
		kept = append(kept, w)
		end = w.End
	}
	return kept
}

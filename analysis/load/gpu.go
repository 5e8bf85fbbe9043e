package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// gpu returns the node's device of that UUID: two agents, one after the other, saw the same one.
func (n *Node) gpu(note recording.GPUNote) *GPU {
	for _, g := range n.GPUs {
		if g.Note.UUID == note.UUID && note.UUID != "" {
			g.Note = note
			return g
		}
	}
	g := &GPU{Node: n, Note: note, States: newSeries(stateFields, seriesCap), Links: map[recording.Link]float64{}, PIDs: map[uint32]bool{}}
	n.GPUs = append(n.GPUs, g)
	return g
}

// gpu surveys one window: it finds the device, and sees when the window was.
func (a *agentFold) gpu(rec *recording.Record) bool {
	begin, end, ok := span(rec.Times())
	if !ok || begin == end {
		return false
	}
	g := a.device(rec)
	g.Emulated = g.Emulated || rec.Flags()&recording.GPUEmulated != 0
	g.windows++
	a.node.seen(begin, end)
	return true
}

// device returns the GPU that a record is of.
func (a *agentFold) device(rec *recording.Record) *GPU {
	g := a.gpus[rec.Ref()]
	if g == nil { // its note was lost
		g = a.node.gpu(recording.GPUNote{GPU: rec.Ref(), Emulated: rec.Flags()&recording.GPUEmulated != 0})
		a.gpus[rec.Ref()] = g
	}
	return g
}

// Load reads the counter windows of the device, into memory of the room until Unload. Reading has those that contradict one another;
// the others' the survey counted.
func (g *GPU) Load(room *Room) (all Reading, err error) {
	if err := g.Node.gather(room); err != nil {
		return all, err
	}
	if !g.gathered {
		if err := gather([]*GPU{g}, g.Node.feeds, room); err != nil {
			return all, err
		}
	}
	for i := range g.Windows {
		g.Windows[i].check()
	}
	g.Windows = disjoint(g.Windows, &all.Bad)
	g.borrow()
	stopped(g.Windows)
	halted(g.Windows)
	return all, nil
}

// Unload forgets the windows.
func (g *GPU) Unload(room *Room) {
	room.spareWindows = append(room.spareWindows, g.Windows)
	g.Windows = nil
	if g.gathered {
		g.Node.room.giveBack(g.expected())
	}
}

// taker takes the windows of one device out of one stream.
type taker struct {
	*GPU
	begin, end uint64 // of the last window as recorded, and whose it is
	ref        uint16
	open       bool
}

func (t *taker) window(v recording.GPU) {
	t.open = false
	begin, end, ok := span(v.Begin, v.End)
	if !ok || begin == end {
		return
	}
	t.begin, t.end, t.ref, t.open = v.Begin, v.End, v.Ref, true
	w := Window{Begin: begin, End: end,
		SM: v.SM, Resident: v.Resident, Tensor: v.Tensor, DRAM: v.DRAM, Copy: v.Copy,
		Power: within(v.Power, mostWatts), Clock: within(v.SMClock, mostHertz), Memory: within(v.Memory, mostBytes),
		FP32: nan, PCIeIn: nan,
		Emulated: v.Flags&recording.GPUEmulated != 0, Untrusted: v.Flags&recording.GPUUntrusted != 0,
		Known: v.Flags&recording.GPUHeldKnown != 0, Holds: v.Flags&recording.GPUHeld != 0}
	if t.Note.Parent != "" { // GPU-util is the whole GPU's, or 0 (NVIDIA/DCGM issue 80)
		w.Resident = nan
	}
	t.Windows = append(t.Windows, w)
}

// pipes adds further counters to the window before them.
func (t *taker) pipes(v recording.GPUPipes) {
	if !t.open || v.Begin != t.begin || v.End != t.end || v.Ref != t.ref {
		return
	}
	w := &t.Windows[len(t.Windows)-1]
	w.FP32, w.PCIeIn = v.FP32, within(v.PCIeIn, mostRate)
	if w.Resident != w.Resident {
		w.Resident, w.engine = v.Engine, v.Engine == v.Engine
	}
	if v.Occupancy > rounding || v.Engine > rounding {
		w.Untrusted, w.impossible = true, true
	}
	if w.Untrusted || w.SM > rounding {
		return
	}
	seconds := float64(w.End-w.Begin) / 1e9
	add := func(sum *[2]float64, x, most float32) {
		if x = within(x, most); x == x {
			sum[0] += float64(x) * seconds
			sum[1] += seconds
		}
	}
	add(&t.Further.Occupancy, v.Occupancy, 1)
	add(&t.Further.PCIeOut, v.PCIeOut, mostRate)
	add(&t.Further.NVLinkIn, v.NVLinkIn, mostRate)
	add(&t.Further.NVLinkOut, v.NVLinkOut, mostRate)
}

// ByEngine reports that Resident is the graphics engine's counter, not GPU-util.
func (w *Window) ByEngine() bool { return w.engine }

// ByDriver reports that Resident is GPU-util as the driver tells it.
func (w *Window) ByDriver() bool { return w.driver }

// util makes a window of what the driver tells, where nothing counts.
func (t *taker) util(v recording.GPUState) {
	begin, end, ok := span(v.Begin, v.End)
	if !ok || begin == end || begin == 0 || v.Resident != v.Resident || t.Note.Parent != "" {
		return
	}
	t.Windows = append(t.Windows, Window{Begin: begin, End: end, Resident: v.Resident, SM: nan, Tensor: nan, DRAM: nan, Copy: nan,
		FP32: nan, PCIeIn: nan, driver: true,
		Power: within(v.Power, mostWatts), Clock: within(v.SMClock, mostHertz), Memory: within(v.MemoryUsed, mostBytes)})
}

// borrow takes from the driver how long kernels were there, for windows whose source does not tell. Its windows are longer. Where counters
// show nothing at all, of the engine neither, the driver is the second witness: if kernels were there all the time they have stopped.
func (g *GPU) borrow() {
	row := 0
	for i := range g.Windows {
		w := &g.Windows[i]
		nothing := w.engine && w.Resident < nothingActive && w.SM < nothingActive
		if w.Resident == w.Resident && !nothing || w.impossible || g.Note.Parent != "" {
			continue
		}
		middle := w.Begin + (w.End-w.Begin)/2
		for ; row < g.States.Len(); row++ {
			begin, end, _, v := g.States.At(row, StateResident)
			if end < middle {
				continue
			}
			if begin <= middle && (!nothing || v >= busyAllTime) {
				w.Resident, w.engine, w.driver = v, false, v == v
			}
			break
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

package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// agentFold takes the records of the agent of a node.
type agentFold struct {
	source
	node  *Node
	index int
	gpus  map[uint16]*GPU // by the stream's own number
	bad   uint64
}

func newAgentFold(node *Node, s *recording.Stream, from source) agentFold {
	a := agentFold{source: from, node: node, index: len(node.Notes), gpus: map[uint16]*GPU{}}
	for _, note := range s.Notes.GPUs {
		a.gpus[note.GPU] = node.gpu(note)
	}
	node.Notes = append(node.Notes, s.Notes)
	return a
}

// fold reads the agents of a node, one after another.
func fold(agents []agentFold) (all Reading, err error) {
	for i := range agents {
		a := &agents[i]
		reading, err := a.read(a.take)
		if err != nil {
			return all, err
		}
		reading.Bad = a.bad
		all.Add(reading)
	}
	return all, nil
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

func (a *agentFold) take(records []recording.Record) {
	for i := range records {
		rec := &records[i]
		ok := true
		switch rec.Kind() {
		case recording.KindGPU:
			ok = a.gpu(rec.GPU())
		case recording.KindMachine:
			v := rec.Machine()
			ok = a.add(&a.node.Usage.Machine, v.Begin, v.End, v.Busy, v.IOWait, v.Steal, v.Runnable, reading(v.MemoryAvailable), v.Cores, v.Foreign)
		case recording.KindProcess:
			v := rec.Process()
			p := a.node.Usage.process(v.PID, recording.ProcessRole(v.Ref))
			ok = a.add(&p.Usage, v.Begin, v.End, v.CPU, v.System, v.RunQueue, reading(v.RSS), reading32(v.Threads), v.Read, v.Received)
		case recording.KindLimits:
			v := rec.Limits()
			ok = a.add(&a.node.Usage.Limits, v.Begin, v.End, v.Quota, v.CPUSet, v.Usable, v.Throttled, reading(v.ThrottledTime), reading(v.MemoryLimit))
		case recording.KindPressure:
			v := rec.Pressure()
			ok = a.add(&a.node.Usage.Pressure, v.Begin, v.End, v.CPUSome, v.IOSome, v.IOFull, v.MemorySome, v.MemoryFull)
		case recording.KindDisk, recording.KindNet:
			devices := a.node.Usage.Disks
			if rec.Kind() == recording.KindNet {
				devices = a.node.Usage.Nets
			}
			v := rec.Device()
			ok = a.add(byRef(devices, v.Ref, deviceFields), v.Begin, v.End, v.Read, v.Ops, v.Busy, v.ReadWait)
		case recording.KindSource:
			v := rec.Source()
			ok = a.add(byRef(a.node.Usage.Sources, Source{a.index, v.Ref}, sourceFields), v.Begin, v.End, seconds(v.Lateness), reading32(v.Samples), reading32(v.Errors), v.CPU, reading(v.RSS))
		}
		if !ok {
			a.bad++
		}
	}
}

// add keeps one reading, weighted by its seconds.
func (a *agentFold) add(s *Series, begin, end uint64, v ...float32) bool {
	b, e, ok := span(begin, end)
	if !ok || b == e {
		return false
	}
	for i := range v {
		v[i] = amount(v[i])
	}
	a.node.seen(b, e)
	s.add(b, e, float64(e-b)/1e9, v...)
	return true
}

func (a *agentFold) gpu(v recording.GPU) bool {
	begin, end, ok := span(v.Begin, v.End)
	if !ok || begin == end {
		return false
	}
	g := a.gpus[v.Ref]
	if g == nil { // its note was lost
		g = a.node.gpu(recording.GPUNote{GPU: v.Ref, Emulated: v.Flags&recording.GPUEmulated != 0})
		a.gpus[v.Ref] = g
	}
	w := Window{Begin: begin, End: end,
		SM: v.SM, Resident: v.Resident, Tensor: v.Tensor, DRAM: v.DRAM, Copy: v.Copy,
		Power: amount(v.Power), Clock: amount(v.SMClock), Memory: amount(v.Memory),
		Emulated: v.Flags&recording.GPUEmulated != 0, Untrusted: v.Flags&recording.GPUUntrusted != 0,
		Known: v.Flags&recording.GPUHeldKnown != 0, Holds: v.Flags&recording.GPUHeld != 0}
	w.check()
	g.Windows = append(roomy(g.Windows), w)
	a.node.seen(begin, end)
	return true
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

package live

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// device is one GPU, or one slice of one.
type device struct {
	node     *Node
	id       string // UUID, as it was named first
	note     recording.GPUNote
	told     map[string]recording.AllocationNote // who has it, by who told
	windows  []recording.GPU                     // counters that are not booked yet
	window   uint64                              // ns, end of the newest
	late     uint64                              // ns from the begin of a window until it is told, about the longest of late
	seen     uint64                              // ns, the last sign of it
	since    uint64                              // ns, when it was first heard of
	episodes []*episode                          // not closed yet, in order; the last one may still be open
	shown    uint64                              // ns, end of the newest window that was booked: what comes again is not counted again
	booked   uint64                              // ns, end of the last episode: no time is booked twice
	left     uint64                              // ns, when the last process on it ended
	turned   bool                                // a process on it ended: a new episode begins
}

// mostWindows of one GPU wait for being booked: an hour of windows of 100 ms. More come from a source that lies about time.
const mostWindows = 36000

// ahead is how far, in ns, a window may lie behind the last Tick: a loop that was held up is no reason to doubt it.
const ahead = 3600e9

// device returns the GPU of that UUID, made when first heard of. PyTorch writes UUIDs otherwise than NVML.
func (n *Node) device(uuid string) *device {
	if uuid = recording.Name(uuid); uuid == "" {
		return nil
	}
	if d := n.devices[uuid]; d != nil {
		return d
	}
	for _, d := range n.devices {
		if ledger.SameGPU(d.id, uuid) {
			return d
		}
	}
	d := &device{node: n, id: uuid, told: map[string]recording.AllocationNote{}, since: n.now}
	n.devices[uuid] = d
	return d
}

// uuid is the name under which the node keeps a device; "" of none.
func (d *device) uuid() string {
	if d == nil {
		return ""
	}
	return d.id
}

// named takes what a source says of a GPU; nil where it does not say which.
func (n *Node) named(note recording.GPUNote) *device {
	d := n.device(note.UUID)
	if d == nil {
		return nil
	}
	d.note, d.seen = note, n.now
	for _, e := range d.episodes {
		e.device(note)
	}
	return d
}

// watch takes one record of an agent.
func (s *stream) watch(r *recording.Record) {
	switch r.Kind() {
	case recording.KindGPU:
		d, v := s.gpus[r.Ref()], r.GPU()
		if d == nil || v.Begin >= v.End || v.End >= recording.Latest || v.End > s.node.now+ahead || len(d.windows) >= mostWindows {
			return
		}
		d.windows = append(d.windows, v)
		d.window, d.seen = max(d.window, v.End), s.node.now
		d.tardy(v.Begin)
	case recording.KindMachine:
		s.node.machine = machineOf(r.Machine())
	}
}

// allocate takes what somebody tells of who has a GPU.
func (n *Node) allocate(a recording.AllocationNote) {
	if d := n.device(a.UUID); d != nil {
		d.told[a.By], d.seen = a, n.now
	}
}

// mostLate is how long, in ns, is waited for counters: four windows of an exporter that collects every 30 s, as dcgm-exporter does
// (NVIDIA/dcgm-exporter, pkg/cmd/app.go, collect-interval).
const mostLate = 120e9

// tardy takes note of how late a window that began then is told. What a source that had stopped makes up for is soon forgotten again.
func (d *device) tardy(begin uint64) {
	d.late -= d.late / 32
	if now := d.node.now; begin >= d.node.options.Begin && begin < now {
		d.late = min(max(d.late, now-begin), mostLate)
	}
}

// settled is the time up to which every source has told: those of the machine with their lag, and the counters of this GPU as late as
// they come. It is never within a window, so that none is counted of which the tenant may still lose a part.
func (d *device) settled() uint64 {
	n := d.node
	t := n.now - min(n.now, max(n.options.Lag, d.late+d.late/8))
	slices.SortStableFunc(d.windows, func(a, b recording.GPU) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, w := range d.windows {
		if begin := max(w.Begin, d.shown); begin < t && w.End > t {
			return begin
		}
	}
	return t
}

// settle books what has been told, and closes episodes that are over.
func (d *device) settle() {
	t := d.settled()
	n := 0
	for ; n < len(d.windows) && max(d.windows[n].Begin, d.shown) < t; n++ {
		w := &d.windows[n]
		if w.Begin = max(w.Begin, d.shown); w.Begin >= w.End {
			continue
		}
		d.shown = w.End
		for _, e := range d.episodes {
			e.window(w)
		}
	}
	d.windows = slices.Delete(d.windows, 0, n)
	d.episodes = slices.DeleteFunc(d.episodes, func(e *episode) bool { return e.settle(int64(t)) })
}

// trainedOn reports whether some running process trains on it.
func (n *Node) trainedOn(d *device) bool {
	for _, s := range n.streams {
		if s.main() && s.gpu == d.id {
			return true
		}
	}
	return false
}

// holds says of a window whether somebody holds the GPU, where its source does not know: a training process that fetched or stepped
// on it does, and so does whoever the driver lists.
func (d *device) holds(e *episode, flags uint8) uint8 {
	if flags&recording.GPUHeldKnown != 0 {
		return flags
	}
	if e.trains() {
		return flags | recording.GPUHeldKnown | recording.GPUHeld
	}
	a, ok := d.told[recording.AllocatedByProcesses]
	switch {
	case !ok || a.Holders == nil:
		return flags
	case len(a.Holders) > 0:
		return flags | recording.GPUHeldKnown | recording.GPUHeld
	}
	return flags | recording.GPUHeldKnown
}

// snapshot is the row of the device.
func (d *device) snapshot() GPU {
	g := GPU{UUID: d.id, Name: d.note.Name, Source: d.note.Source, Grade: d.note.Grade, Emulated: d.note.Emulated, Index: d.note.Index, Window: d.window}
	if holders, known := d.holders(); known {
		g.Assigned = unit.Some(len(holders) > 0)
	}
	return g
}

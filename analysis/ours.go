package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
)

// ours returns the devices of a node that are the job's. On a machine that several jobs share, every GPU is watched; those on which no
// rank runs are the job's only if somebody says so: they are assigned to the holder of one on which ranks run, or a rank has a context
// there. Where no rank could be found on any, all are taken that may be theirs. Of a GPU that is cut into slices, the slices are the devices.
func (r *run) ours(node *load.Node, devices []*device, ranks []*rank) []*device {
	devices = slices.DeleteFunc(devices, func(d *device) bool {
		return len(d.ranks) == 0 && slices.ContainsFunc(node.GPUs, func(g *load.GPU) bool { return g.Note.Parent != "" && g.Note.Parent == d.Note.UUID })
	})
	found := slices.ContainsFunc(ranks, func(k *rank) bool { return k.device != nil || k.GPU() != "" })
	holders := holdersOf(devices)
	all := len(devices)
	devices = slices.DeleteFunc(devices, func(d *device) bool {
		if !found {
			return d.withOthers(ranks)
		}
		if len(d.ranks) > 0 || d.usedBy(ranks) {
			return false
		}
		sure := d.promised(holders)
		if sure == stat.GradeC {
			d.grade = stat.GradeC
		}
		return sure == ""
	})
	r.foreign += all - len(devices)
	return devices
}

// holdersOf names to whom the devices of ranks are assigned, and how sure it is that a rank is on one of theirs.
func holdersOf(devices []*device) map[string]stat.Grade {
	holders := map[string]stat.Grade{}
	for _, d := range devices {
		for _, k := range d.ranks {
			for _, h := range d.assigned() {
				if !k.guessed() {
					holders[h] = stat.GradeA
				} else if holders[h] == "" {
					holders[h] = stat.GradeC
				}
			}
		}
	}
	return holders
}

// promised says how sure it is that the device is assigned to one of the holders; "" if it is not.
func (d *device) promised(holders map[string]stat.Grade) (sure stat.Grade) {
	for _, h := range d.assigned() {
		if g := holders[h]; g == stat.GradeA || sure == "" {
			sure = g
		}
	}
	return sure
}

// usedBy reports whether one of the ranks has a context on the device.
func (d *device) usedBy(ranks []*rank) bool {
	return slices.ContainsFunc(ranks, func(k *rank) bool {
		return k.Declaration.PID > 0 && (k.MachinePID() && d.PIDs[uint32(k.Declaration.PID)] || d.seenFromOutside(k))
	})
}

// withOthers reports that processes have a context on the device and none of them is of the job, at a look by when its ranks would have had
// one: one that said to have initialised CUDA has it, and any other after as long as passes between two looks.
func (d *device) withOthers(ranks []*rank) bool {
	ready := load.Unknown
	for _, k := range ranks {
		if k.Begin == load.Unknown {
			return false
		}
		ready = max(ready, k.settledBy())
	}
	return ready != load.Unknown && d.listsOthers(ranks, ready)
}

// listsOthers reports that some look since found processes, and none ever one of the job's. Pids are compared only where the ranks' are those
// of the machine; of a rank in a container it is not known.
func (d *device) listsOthers(ranks []*rank, since int64) bool {
	if d.usedBy(ranks) || slices.ContainsFunc(ranks, func(k *rank) bool { return !k.MachinePID() }) {
		return false
	}
	for pid := range d.PIDs { // of a child, whose part in the job nobody else tells
		if _, ours := d.Node.Usage.Processes[pid]; ours {
			return false
		}
	}
	return slices.ContainsFunc(d.Looks, func(l load.Look) bool { return l.At >= since && l.Processes > 0 })
}

// settledBy is when a rank has a context on its GPU, if it is to have one.
func (k *rank) settledBy() int64 {
	for _, m := range k.Marks {
		if m.Code == recording.MarkCUDA {
			return m.Begin
		}
	}
	return k.Begin + betweenLooks
}

// seenFromOutside reports whether somebody who looked from outside its container named the rank's process as it calls itself.
func (d *device) seenFromOutside(k *rank) bool {
	self := recording.PIDInside{PID: k.Declaration.PID, Namespace: k.Declaration.Namespace}
	return self.Namespace != 0 && slices.ContainsFunc(d.Allocations, func(a recording.AllocationNote) bool {
		return slices.ContainsFunc(a.Holders, func(h recording.Holder) bool { return slices.Contains(h.Inside, self) })
	})
}

// assigned names whom a scheduler gave the device to, at any time.
func (d *device) assigned() (holders []string) {
	for _, a := range d.Allocations {
		if a.By == recording.AllocatedByProcesses {
			continue
		}
		for _, h := range a.Holders {
			if name := holderKey(h); name != "" && len(holders) < mostHolders && !slices.Contains(holders, name) {
				holders = append(holders, name)
			}
		}
	}
	return holders
}

// mostHolders bounds how many holders of one device are told apart.
const mostHolders = 1024

// holderKey tells holders apart.
func holderKey(h recording.Holder) string {
	switch {
	case h.PodUID != "":
		return h.PodUID
	case h.Pod != "":
		return h.Namespace + "/" + h.Pod
	}
	return h.Job
}

package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// ours returns the devices of a node that are the job's. On a machine that several jobs share, every GPU is watched; those on which no
// rank runs are the job's only if somebody says so: they are assigned to the holder of one on which ranks run, or a rank has a context
// there. Where no rank could be found on any, all are taken. Of a GPU that is cut into slices, the slices are the devices.
func (r *run) ours(node *load.Node, devices []*device, ranks []*rank) []*device {
	devices = slices.DeleteFunc(devices, func(d *device) bool {
		return len(d.ranks) == 0 && slices.ContainsFunc(node.GPUs, func(g *load.GPU) bool { return g.Note.Parent != "" && g.Note.Parent == d.Note.UUID })
	})
	holders := map[string]bool{}
	found := false
	for _, d := range devices {
		if len(d.ranks) > 0 {
			found = true
			for _, h := range d.assigned() {
				holders[h] = true
			}
		}
	}
	if !found {
		return devices
	}
	all := len(devices)
	devices = slices.DeleteFunc(devices, func(d *device) bool {
		return len(d.ranks) == 0 && !d.usedBy(ranks) && !slices.ContainsFunc(d.assigned(), func(h string) bool { return holders[h] })
	})
	r.foreign += all - len(devices)
	return devices
}

// usedBy reports whether one of the ranks has a context on the device.
func (d *device) usedBy(ranks []*rank) bool {
	return slices.ContainsFunc(ranks, func(k *rank) bool {
		return k.Declaration.PID > 0 && (k.MachinePID() && d.PIDs[uint32(k.Declaration.PID)] || d.seenFromOutside(k))
	})
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

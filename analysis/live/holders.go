package live

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// holders returns the tenants that have the GPU now, in a fixed order, and whether anybody knows. A scheduler's word counts most. Without
// one, those have it that the driver lists, and the processes that train on it.
//
// The processes of a tenant that a scheduler names give it the name of their job: a pod is what its training process says it is.
func (d *device) holders() (tenants []Tenant, known bool) {
	trained := d.trainers()
	told, scheduled := d.scheduled()
	if !scheduled {
		if a, ok := d.told[recording.AllocatedByProcesses]; ok && a.Holders != nil {
			told, known = a.Holders, true
		}
	}
	tenants = append(tenants, trained...)
	for _, h := range told {
		if t, ok := d.unnamed(h, trained, len(told) == 1); ok {
			tenants = append(tenants, t)
		}
	}
	slices.SortFunc(tenants, Tenant.compare)
	return slices.Compact(tenants), known || scheduled || len(trained) > 0
}

// scheduled returns whom a scheduler gave the GPU, if one tells.
func (d *device) scheduled() (holders []recording.Holder, known bool) {
	for _, by := range []string{recording.AllocatedByKubernetes, recording.AllocatedBySlurm, recording.AllocatedByExporter} {
		if a, ok := d.told[by]; ok && a.Holders != nil {
			return a.Holders, true
		}
	}
	return nil, false
}

// trainers returns the tenants whose processes train on the GPU.
func (d *device) trainers() (tenants []Tenant) {
	for _, s := range d.node.streams {
		if s.main() && s.gpu == d.id {
			tenants = append(tenants, s.group.tenant)
		}
	}
	slices.SortFunc(tenants, Tenant.compare)
	return slices.Compact(tenants)
}

// unnamed returns the tenant that a holder is, unless it is one of those that train.
func (d *device) unnamed(h recording.Holder, trained []Tenant, alone bool) (t Tenant, ok bool) {
	for _, s := range d.node.streams {
		if s.main() && s.gpu == d.id && d.node.runsIn(h, s.declaration) {
			d.node.remember(h, s.group.tenant)
			return t, false
		}
	}
	if h.Pod != "" {
		for _, other := range trained {
			if other.Namespace == h.Namespace && other.Pod == h.Pod {
				return t, false
			}
		}
	}
	// Whoever trains on a GPU that one holder has is that holder, though it does not say so.
	if alone && len(trained) == 1 && (h.Pod == "" || trained[0].Pod == "") {
		d.node.remember(h, trained[0])
		return t, false
	}
	if t, ok = d.node.called[nameOf(h)]; ok {
		return t, true
	}
	return Tenant{Job: cmp.Or(h.Job, h.Pod), Namespace: h.Namespace, Pod: h.Pod}, true
}

// holderName is what a scheduler calls a holder: a pod, or a job.
type holderName struct{ namespace, pod, job string }

func nameOf(h recording.Holder) holderName {
	if h.Pod != "" {
		return holderName{namespace: h.Namespace, pod: h.Pod}
	}
	return holderName{job: h.Job}
}

// remember keeps what the processes of a holder call their job: a scheduler that still holds the GPU when they have ended means the same.
func (n *Node) remember(h recording.Holder, t Tenant) {
	if name := nameOf(h); name != (holderName{}) {
		n.called[name] = t
	}
}

// runsIn reports whether a process is one of those of a holder.
func (n *Node) runsIn(h recording.Holder, d recording.Declaration) bool {
	for _, p := range h.Inside {
		if p.PID == d.PID && p.Namespace == d.Namespace {
			return true
		}
	}
	ours := d.Namespace == 0 || n.options.Namespace == 0 || d.Namespace == n.options.Namespace // else its pid is another's here
	return ours && len(h.Inside) == 0 && slices.Contains(h.PIDs, d.PID)
}

// locate finds the GPU of training processes that do not say which it is: the driver lists them on one, or there is only one.
func (n *Node) locate() {
	for _, s := range n.streams {
		if !s.main() || s.gpu != "" {
			continue
		}
		for _, d := range n.devices {
			a := d.told[recording.AllocatedByProcesses]
			if slices.ContainsFunc(a.Holders, func(h recording.Holder) bool { return n.runsIn(h, s.declaration) }) {
				s.gpu = d.id
			}
		}
		if d := n.only(); s.gpu == "" && d != nil && len(s.early) > 0 {
			s.gpu, s.guessed = d.id, true
		}
	}
}

// only is the GPU of a machine that has one, nil where a source listed several or none, or where the driver says that nobody is on it. What
// another process says of its GPU is no list.
func (n *Node) only() (only *device) {
	for _, d := range n.devices {
		if d.note.UUID == "" {
			continue
		}
		if only != nil {
			return nil
		}
		only = d
	}
	if only != nil {
		if a, ok := only.told[recording.AllocatedByProcesses]; ok && a.Holders != nil && len(a.Holders) == 0 {
			return nil
		}
	}
	return only
}

package live

import (
	"cmp"
	"math"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Snapshot returns all that is known now.
func (n *Node) Snapshot() *Snapshot {
	s := &Snapshot{At: n.now, Machine: n.machine}
	for _, d := range sorted(n.devices, func(a, b *device) int { return cmp.Compare(a.id, b.id) }) {
		s.GPUs = append(s.GPUs, d.snapshot())
		holders, _ := d.holders()
		for _, t := range holders {
			s.Holders = append(s.Holders, Holder{d.id, t})
		}
	}
	for _, t := range sorted(n.tenancies, func(a, b *tenancy) int { return cmp.Or(cmp.Compare(a.GPU, b.GPU), a.Tenant.compare(b.Tenant)) }) {
		row := t.Tenancy
		row.Running, row.Carried, row.Books = t.open > 0, t.carried, n.books(t)
		s.Tenancies = append(s.Tenancies, row)
	}
	running := map[Tenant]bool{}
	disabled := n.disabled()
	for _, r := range sorted(n.ranks, (*rank).compare) {
		row := r.Rank
		row.Running, row.Carried, row.Hook.Disabled = r.processes > 0, r.carried, disabled[r]
		row.GPU = n.gpuOf(r)
		running[r.Tenant] = running[r.Tenant] || row.Running
		s.Ranks = append(s.Ranks, row)
	}
	for _, j := range sorted(n.jobs, func(a, b *job) int { return a.Tenant.compare(b.Tenant) }) {
		row := j.Job
		row.Running, row.Carried, row.StepTimes = running[j.Tenant], j.carried, j.StepTimes.clone()
		s.Jobs = append(s.Jobs, row)
	}
	return s
}

func (r *rank) compare(o *rank) int {
	return cmp.Or(r.Tenant.compare(o.Tenant), cmp.Compare(r.Rank.Rank.Or(-1), o.Rank.Rank.Or(-1)))
}

// books is all that is settled of a tenancy.
func (n *Node) books(t *tenancy) ledger.Totals {
	all := t.Books
	if d := n.devices[t.GPU]; d != nil {
		for _, e := range d.episodes {
			if e.of == t {
				all = all.Add(e.totals())
			}
		}
	}
	return all
}

// disabled tells of which ranks some running process has a hook that switched itself off.
func (n *Node) disabled() map[*rank]bool {
	off := map[*rank]bool{}
	for _, s := range n.streams {
		if s.rank != nil && s.header.Hook == recording.HookDisabled {
			off[s.rank] = true
		}
	}
	return off
}

// gpuOf is the GPU of a rank's newest process, as far as one is known.
func (n *Node) gpuOf(r *rank) string {
	newest := uint64(0)
	for _, s := range n.streams {
		if s.main() && s.rank == r && s.gpu != "" && s.declaration.Opened >= newest {
			newest, r.GPU = s.declaration.Opened, s.gpu
		}
	}
	return r.GPU
}

func machineOf(v recording.Machine) Machine {
	known := func(x float32) unit.Maybe[float64] {
		if math.IsNaN(float64(x)) {
			return unit.Maybe[float64]{}
		}
		return unit.Some(float64(x))
	}
	m := Machine{Cores: known(v.Cores), BusyCores: known(v.Busy), RunnableTasks: known(v.Runnable)}
	if v.MemoryAvailable != recording.Unknown64 {
		m.MemoryAvailable = unit.Some(v.MemoryAvailable)
	}
	return m
}

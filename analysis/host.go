package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// host writes what the machine did in live time. Of several nodes it is the busiest one's row: what binds there binds the job.
func (r *run) host() {
	var rows []Host
	for _, n := range r.job.Nodes {
		rows = append(rows, r.machine(n))
	}
	if len(rows) > 0 {
		r.out.Host = slices.MaxFunc(rows, func(a, b Host) int { return cmp.Compare(a.BusyCores.Or(-1), b.BusyCores.Or(-1)) })
	}
}

const noAgent = "no agent watched the machine"

func (r *run) machine(n *load.Node) Host {
	live := r.liveOn(n)
	u := &n.Usage
	over := func(s *load.Series, field int, why string) Ratio {
		sum, weight := s.Sum(field, live)
		return quotient(sum, weight, why)
	}
	h := Host{
		Cores:          over(&u.Machine, load.MachineCores, noAgent),
		BusyCores:      over(&u.Machine, load.MachineBusy, noAgent),
		ForeignCores:   over(&u.Machine, load.MachineForeign, noAgent),
		UsableCores:    over(&u.Limits, load.LimitsUsable, noAgent),
		QuotaCores:     over(&u.Limits, load.LimitsQuota, "no CPU quota was seen"),
		ThrottledRatio: over(&u.Limits, load.LimitsThrottled, "throttling was not reported"),
		CPUPressure:    over(&u.Pressure, load.PressureCPU, "the kernel reports no pressure"),
		IOPressure:     over(&u.Pressure, load.PressureIO, "the kernel reports no pressure"),
		MemoryPressure: over(&u.Pressure, load.PressureMemory, "the kernel reports no pressure"),
		ReadBytesRate:  total(u.Disks, live, "no disk was watched"),
		ReceivedRate:   total(u.Nets, live, "no network interface was watched"),
	}
	h.JobCores, h.WorkerRunQueue = jobUsage(u, live)
	for i := range n.Notes {
		for _, note := range n.Notes[i].Hosts {
			if c, ok := note.Cores.Get(); ok && !h.Cores.IsKnown() && c > 0 {
				h.Cores = unit.Some(float64(c))
			}
		}
	}
	return h
}

// liveOn tells live training time on a node: that of its first rank, for all ranks switch together.
func (r *run) liveOn(n *load.Node) func(int64) bool {
	for _, k := range r.ranked {
		if k.Node == n && len(k.live) > 0 && k.ended > k.begun {
			return func(t int64) bool { return t >= k.begun && t <= k.ended && k.live.holds(t) }
		}
	}
	return nil
}

// total adds up the read rates of all devices of a kind.
func total(devices map[uint16]*load.Series, live func(int64) bool, why string) Ratio {
	rate, any := 0.0, false
	for _, ref := range sorted(devices) {
		if sum, seconds := devices[ref].Sum(load.DeviceRead, live); seconds > 0 {
			rate, any = rate+sum/seconds, true
		}
	}
	if !any {
		return unit.None[float64](why)
	}
	return unit.Some(rate)
}

// jobUsage is the cores the job's processes used and the cores its workers waited for. Processes come and go, so both are core
// seconds over the longest time that any of them was watched.
func jobUsage(u *load.Host, live func(int64) bool) (cores, queue Ratio) {
	var cpu, waited, longest float64
	queued := false
	for _, pid := range slices.Sorted(maps.Keys(u.Processes)) {
		p := u.Processes[pid]
		sum, seconds := p.Usage.Sum(load.ProcessCPU, live)
		cpu += sum
		longest = max(longest, seconds)
		if p.Role == recording.RoleWorker {
			sum, seconds := p.Usage.Sum(load.ProcessRunQueue, live)
			waited += sum
			queued = queued || seconds > 0
		}
	}
	cores = quotient(cpu, longest, noAgent)
	queue = quotient(waited, longest, noAgent)
	if !queued {
		queue = unit.None[float64]("no worker's run queue was read")
	}
	return cores, queue
}

package load

import (
	"cmp"

	"github.com/datawait/datawait/probe/recording"
)

// Host is what the agent saw of one machine. Weights are seconds.
type Host struct {
	Machine   Series // fields Machine…
	Limits    Series // fields Limits…
	Pressure  Series // fields Pressure…
	Disks     map[uint16]*Series
	Nets      map[uint16]*Series
	Processes map[uint32]*Process // by pid
	Sources   map[Source]*Series

	recent [64]*Process // by the last bits of the pid: every second the same ones are told of
}

// Source is a probe, or a process of the agent: each of its streams counts its own.
type Source struct {
	Agent int // stream of the node's agents, in their order
	Ref   uint16
}

// Compare orders sources by stream, then number.
func (s Source) Compare(o Source) int {
	return cmp.Or(cmp.Compare(s.Agent, o.Agent), cmp.Compare(s.Ref, o.Ref))
}

// Process is one process over time.
type Process struct {
	PID   uint32
	Role  recording.ProcessRole
	Usage Series // fields Process…
}

// Fields of the series of a Host, units as in SPEC §2.
const (
	MachineBusy = iota
	MachineIOWait
	MachineSteal
	MachineRunnable
	MachineAvailable
	MachineCores
	MachineForeign
	machineFields
)
const (
	LimitsQuota = iota
	LimitsCPUSet
	LimitsUsable
	LimitsThrottled
	LimitsThrottledTime
	LimitsMemory
	limitsFields
)
const (
	PressureCPU = iota
	PressureIO
	PressureIOFull
	PressureMemory
	PressureMemoryFull
	pressureFields
)
const (
	DeviceRead = iota
	DeviceOps
	DeviceBusy
	DeviceReadWait
	deviceFields
)
const (
	ProcessCPU = iota
	ProcessSystem
	ProcessRunQueue
	ProcessRSS
	ProcessThreads
	ProcessRead
	ProcessReceived
	processFields
)
const (
	SourceLateness = iota // seconds
	SourceSamples
	SourceErrors
	SourceCPU
	SourceRSS
	sourceFields
)

// Bounds per node: a job that starts a process per sample must not cost all memory.
const (
	processCap  = 4096 // processes
	processRows = 512  // readings of each
	refCap      = 256  // disks, interfaces, sources
)

func newHost() Host {
	return Host{
		Machine: newSeries(machineFields, seriesCap), Limits: newSeries(limitsFields, seriesCap), Pressure: newSeries(pressureFields, seriesCap),
		Disks: map[uint16]*Series{}, Nets: map[uint16]*Series{}, Sources: map[Source]*Series{}, Processes: map[uint32]*Process{},
	}
}

func (h *Host) process(pid uint32, role recording.ProcessRole) *Process {
	recent := &h.recent[pid%uint32(len(h.recent))]
	if p := *recent; p != nil && p.PID == pid {
		return p
	}
	p := h.Processes[pid]
	*recent = p
	if p == nil {
		p = &Process{PID: pid, Role: role, Usage: newSeries(processFields, processRows)}
		if len(h.Processes) < processCap {
			h.Processes[pid] = p
		}
	}
	return p
}

func byRef[K comparable](m map[K]*Series, ref K, width int) *Series {
	s := m[ref]
	if s == nil {
		fresh := newSeries(width, seriesCap)
		s = &fresh
		if len(m) < refCap {
			m[ref] = s
		}
	}
	return s
}

// reading returns a counter as a float, NaN where it is unknown.
func reading(v uint64) float32 {
	if v == recording.Unknown64 {
		return nan
	}
	return float32(v)
}

func reading32(v uint32) float32 {
	if v == recording.Unknown32 {
		return nan
	}
	return float32(v)
}

// amount returns a float that a counter may show: negative and infinite readings are no readings.
func amount(v float32) float32 {
	if !(v >= 0) || v > 1e30 {
		return nan
	}
	return v
}

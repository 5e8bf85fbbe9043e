package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// Fields of GPU.States. Those of a GPU at work are NaN in readings at which it was not: its clocks, power and link then say
// nothing of the job (an idle GPU lowers its clock and its PCIe link by itself).
const (
	StatePower      = iota // W
	StatePowerLimit        // W
	StateClock             // Hz
	StateClockMax          // Hz
	StateMemory            // bytes
	StateMemoryAll         // bytes
	StateResident          // 0–1
	StateWorkClock         // at work: Hz
	StateWorkPower         // at work: W ÷ limit
	StateThermal           // at work: 1 = held down by temperature, 0 = not
	StateHardware          // at work: 1 = held down by the board: slowdown or power brake
	StateCapped            // at work: 1 = held down by the power limit
	StateNarrow            // at work: 1 = the PCIe link is below the most that card and slot can do
	stateFields
)

// Bits of NVML's clocks event reasons (nvml.h, nvmlClocksEventReasons).
const (
	reasonIdle     = 1
	reasonPower    = 4
	reasonHardware = 8 | 128
	reasonThermal  = 32 | 64
)

// atWork is the share of a state's window with kernels from which its clocks are those of a GPU at work.
const atWork = 0.5

// Bounds per GPU: a driver that fails may send a flood.
const (
	eventCap = 4096
	lookCap  = 1 << 16
	noteCap  = 4096 // of allocations
	pidCap   = 1024
	linkCap  = 64
)

// Look is what was found when somebody looked who has a context.
type Look struct {
	Since     int64 // the look before; Unknown at the first
	At        int64
	Processes int // 0 = none
}

// Event is something that happened to a GPU.
type Event struct {
	At    int64
	Code  uint32 // recording.GPUEvent…
	Value uint64
}

// state keeps one reading of a GPU's state.
func (a *agentFold) state(rec *recording.Record) bool {
	v := rec.GPUState()
	begin, end, ok := span(v.Begin, v.End)
	if !ok {
		return false
	}
	g := a.device(rec)
	if begin == end || begin == 0 { // an instant; of the first look the window is not known
		return true
	}
	a.node.seen(begin, end)
	g.states++
	seconds := float64(end-begin) / 1e9
	var s [stateFields]float32
	for i := range s {
		s[i] = nan
	}
	s[StatePower], s[StatePowerLimit] = within(v.Power, mostWatts), within(v.PowerLimit, mostWatts)
	s[StateClock], s[StateClockMax] = within(v.SMClock, mostHertz), within(v.SMClockMax, mostHertz)
	s[StateMemory], s[StateMemoryAll] = within(v.MemoryUsed, mostBytes), within(v.MemoryAll, mostBytes)
	s[StateResident] = within(v.Resident, 1)
	if s[StateResident] >= atWork {
		working(&s, v.Reasons)
		g.linked(&s, recording.UnpackLink(v.Link), seconds)
	}
	g.States.add(begin, end, seconds, s[:]...)
	return true
}

func working(s *[stateFields]float32, reasons uint32) {
	if reasons == recording.Unknown32 || reasons&reasonIdle == 0 {
		s[StateWorkClock] = s[StateClock]
		if s[StatePowerLimit] > 0 {
			s[StateWorkPower] = s[StatePower] / s[StatePowerLimit]
		}
	}
	if reasons == recording.Unknown32 || reasons&reasonIdle != 0 {
		return
	}
	is := func(bits uint32) float32 {
		if reasons&bits != 0 {
			return 1
		}
		return 0
	}
	s[StateThermal], s[StateHardware], s[StateCapped] = is(reasonThermal), is(reasonHardware), is(reasonPower)
}

// linked notes the PCIe link of a GPU at work.
func (g *GPU) linked(s *[stateFields]float32, l recording.Link, seconds float64) {
	const unknown = 255
	if l.Generation == unknown || l.Width == unknown || l.MaxGeneration == unknown || l.MaxWidth == unknown || l.Generation == 0 || l.Width == 0 {
		return
	}
	s[StateNarrow] = 0
	if l.Generation < l.MaxGeneration || l.Width < l.MaxWidth {
		s[StateNarrow] = 1
	}
	if _, known := g.Links[l]; known || len(g.Links) < linkCap {
		g.Links[l] += seconds
	}
}

// process keeps one process of a look. A look is over when the next one begins.
func (a *agentFold) process(rec *recording.Record) bool {
	v := rec.GPUProcess()
	begin, end, ok := span(v.Begin, v.End)
	if !ok {
		return false
	}
	g := a.device(rec)
	a.node.seen(end, end)
	if g.look.At != end {
		g.looked()
		g.look = Look{Since: begin, At: end}
		if begin == end || begin == 0 {
			g.look.Since = Unknown
		}
	}
	if v.PID != 0 {
		g.look.Processes++
		if len(g.PIDs) < pidCap {
			g.PIDs[v.PID] = true
		}
	}
	return true
}

func (g *GPU) looked() {
	if g.look != (Look{}) && len(g.Looks) < lookCap {
		g.Looks = append(g.Looks, g.look)
	}
	g.look = Look{}
}

// event keeps what happened to a GPU.
func (a *agentFold) event(rec *recording.Record) bool {
	v := rec.GPUEvent()
	t, ok := at(v.T)
	if !ok {
		return false
	}
	if g := a.device(rec); len(g.Events) < eventCap {
		g.Events = append(g.Events, Event{t, v.Code, v.Value})
	}
	return true
}

// settle puts what the agents told of GPUs in order.
func (n *Node) settle() {
	for _, g := range n.GPUs {
		g.looked()
		slices.SortStableFunc(g.Looks, func(a, b Look) int { return cmp.Compare(a.At, b.At) })
		slices.SortStableFunc(g.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	}
	for i := range n.Notes {
		for _, note := range n.Notes[i].Allocations {
			if g := n.named(note.UUID); g != nil && note.T < recording.Latest && len(g.Allocations) < noteCap {
				g.Allocations = append(g.Allocations, note)
			}
		}
	}
	for _, g := range n.GPUs {
		slices.SortStableFunc(g.Allocations, func(a, b recording.AllocationNote) int { return cmp.Compare(a.T, b.T) })
	}
}

func (n *Node) named(uuid string) *GPU {
	i := slices.IndexFunc(n.GPUs, func(g *GPU) bool { return uuid != "" && g.Note.UUID == uuid })
	if i < 0 {
		return nil
	}
	return n.GPUs[i]
}

// machinePIDs is the inode of the first PID namespace of a machine (include/linux/proc_ns.h, PROC_PID_INIT_INO), in which drivers
// tell pids.
const machinePIDs = 0xEFFFFFFC

// MachinePID reports whether the rank's pid is that which a driver knows it by.
func (r *Rank) MachinePID() bool { return r.Declaration.Namespace == machinePIDs }

package analysis

import (
	"strings"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

const (
	noState  = "no source told the state of this GPU"
	noWork   = "the GPU was at no look at work for most of the time since the look before"
	noEvents = "not an Xid"
)

// stateRow is what the driver told of the device.
func (d *device) stateRow() DeviceState {
	of := func(field int, why string) Ratio {
		sum, weight := d.States.Sum(field, nil)
		if d.States.Len() == 0 {
			why = noState
		}
		return quotient(sum, weight, why)
	}
	s := DeviceState{Power: of(load.StatePower, "power was not told"), PowerLimit: of(load.StatePowerLimit, "no limit was told"),
		WorkPower: of(load.StateWorkPower, noWork), Clock: of(load.StateWorkClock, noWork), ClockMax: of(load.StateClockMax, "no highest clock was told"),
		Thermal: of(load.StateThermal, noWork), Hardware: of(load.StateHardware, noWork), PowerCap: of(load.StateCapped, noWork),
		MemoryUsed: d.most(load.StateMemory), Memory: of(load.StateMemoryAll, "the size of its memory was not told")}
	gen, lanes := unit.None[int]("the PCIe link was not told of a GPU at work"), unit.None[int]("the PCIe link was not told of a GPU at work")
	s.LinkGen, s.LinkWidth, s.LinkGenMost, s.LinkWidthMost = gen, lanes, gen, lanes
	if l, ok := d.link(); ok {
		s.LinkGen, s.LinkWidth = unit.Some(int(l.Generation)), unit.Some(int(l.Width))
		s.LinkGenMost, s.LinkWidthMost = unit.Some(int(l.MaxGeneration)), unit.Some(int(l.MaxWidth))
	}
	return s
}

func (d *device) most(field int) Ratio {
	most := -1.0
	for i := range d.States.Len() {
		if _, _, _, v := d.States.At(i, field); v == v {
			most = max(most, float64(v))
		}
	}
	if most < 0 {
		return unit.None[float64](noState)
	}
	return unit.Some(most)
}

// link is the PCIe link that the device had longest while it worked.
func (d *device) link() (link recording.Link, ok bool) {
	longest := 0.0
	for l, seconds := range d.Links {
		if seconds > longest || seconds == longest && l.Pack() > link.Pack() {
			link, longest, ok = l, seconds, true
		}
	}
	return link, ok
}

var eventNames = map[uint32]string{recording.GPUEventXid: "xid", recording.GPUEventGone: "lost", recording.GPUEventBack: "back",
	recording.GPUEventRestated: "counters-began-anew"}

// events lists what happened to the device, each kind once.
func (r *run) events(d *device) []DeviceEvent {
	out := []DeviceEvent{}
	at := map[[2]uint64]int{}
	for _, e := range d.Events {
		name := eventNames[e.Code]
		if name == "" {
			continue
		}
		key := [2]uint64{uint64(e.Code), 0}
		xid := unit.None[int](noEvents)
		if e.Code == recording.GPUEventXid {
			key[1] = e.Value
			xid = unit.None[int]("its number was not told")
			if e.Value < 1<<16 {
				xid = unit.Some(int(e.Value))
			}
		}
		if i, ok := at[key]; ok {
			out[i].Count++
			continue
		}
		if len(out) == 64 {
			break
		}
		at[key] = len(out)
		out = append(out, DeviceEvent{Name: name, Xid: xid, Count: 1, Seconds: r.seconds(d.Node, e.At)})
	}
	return out
}

// called is the device in a sentence.
func (d *device) called() string {
	name := strings.TrimSpace(d.Note.UUID)
	if len(name) > 12 {
		name = name[:12]
	}
	if name == "" {
		return "a GPU"
	}
	return "GPU " + strings.TrimPrefix(name, "GPU-")
}

package sample

import (
	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// climbed gives every GPU, and the job, the ladder that its ratios make, at a price of a GPU-hour; 0 = none.
func climbed(r *analysis.Result, price float64) *analysis.Result {
	noPrice := unit.None[float64]("no price of a GPU-hour was given (--gpu-hour-cost)")
	r.HourCost = noPrice
	if price > 0 {
		r.HourCost = num(price)
	}
	rung := func(name string, ratio analysis.Ratio, hours float64, grade stat.Grade) analysis.Rung {
		x := analysis.Rung{Name: name, Ratio: ratio, Grade: unit.Some(grade), Coverage: num(1), Source: "emulated counters", Cost: noPrice}
		v, ok := ratio.Get()
		if !ok {
			x.GPUHours, x.Cost, x.Grade, x.Coverage = unit.None[float64](ratio.Why()), unit.None[float64](ratio.Why()), unit.None[stat.Grade](ratio.Why()), num(0)
			return x
		}
		x.GPUHours = num(v * hours)
		if price > 0 {
			x.Cost = num(v * hours * price)
		}
		return x
	}
	ladder := func(g analysis.GPU, hours float64) []analysis.Rung {
		sm := unit.Broken[float64](g.SMActiveRatio.Why())
		if e, ok := g.SMActiveRatio.Get(); ok {
			sm = num(e.Value)
		}
		return []analysis.Rung{rung("allocated", num(1), hours, stat.GradeA), rung("held", g.HeldRatio, hours, stat.GradeB), rung("resident", g.ResidentRatio, hours, stat.GradeB),
			rung("sm_active", sm, hours, g.Grade), rung("tensor_active", g.TensorActiveRatio, hours, g.Grade)}
	}
	all := 0.0
	for i := range r.GPUs {
		hours := float64(r.GPUs[i].AllocatedNS) / 3600e9
		all += hours
		r.GPUs[i].Ladder = ladder(r.GPUs[i], hours)
	}
	if len(r.GPUs) > 0 {
		r.Ladder = ladder(r.GPUs[0], all)
	}
	return r
}

// reported gives GPUs what drivers tell.
func reported(r *analysis.Result) *analysis.Result {
	for i := range r.GPUs {
		g := &r.GPUs[i]
		g.Shared = unit.Some("time-slicing")
		g.Events = []analysis.DeviceEvent{{Name: "xid", Xid: unit.Some(31), Count: 2, Seconds: 12.5}, {Name: "lost", Count: 1, Seconds: 90}}
		g.State = analysis.DeviceState{PowerCap: num(0.41), Clock: num(1.58e9), ClockMax: num(1.965e9), WorkPower: num(0.99), LinkGen: unit.Some(4), LinkWidth: unit.Some(8),
			LinkGenMost: unit.Some(4), LinkWidthMost: unit.Some(16)}
	}
	return r
}

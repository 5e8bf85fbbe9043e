package analysis

import (
	"fmt"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// The rungs of the ladder, from the top.
const (
	rungAllocated = "allocated"
	rungHeld      = "held"
	rungResident  = "resident"
	rungSM        = "sm_active"
	rungTensor    = "tensor_active"
)

// A number that covers less of the allocated time is worth less, and one that covers less than half says nothing of the rest.
const (
	coversWell = 0.9
	coversHalf = 0.5
)

// rungs are the numbers of the ladder of one device.
func (d *device) rungs(g *GPU, hourCost float64) []Rung {
	c, allocated := &d.ladder, float64(d.books.Allocated)
	price := d.price(hourCost)
	all := "no time was allocated"
	sm := unit.None[float64](g.SMActiveRatio.Why())
	if e, ok := g.SMActiveRatio.Get(); ok {
		sm = unit.Some(e.Value)
	} else if c.smKnown > 0 && c.sm != nil { // too few windows for an interval, and a mean all the same
		sum, weight := c.sm.Sums()
		sm = quotient(sum, weight, all)
	}
	resident := stat.Worse(d.grade, stat.GradeB) // GPU-util is a mean of the driver, of windows of its own
	if d.Uncounted || d.Note.Parent != "" {      // the engine counter of a slice may read at most a half or a third (NVIDIA/DCGM issue 138)
		resident = stat.GradeC
	}
	rungs := []Rung{
		{Name: rungAllocated, Ratio: quotient(allocated, allocated, all), Grade: unit.Some(stat.GradeA), Coverage: quotient(allocated, allocated, all), Source: "time of the run"},
		{Name: rungHeld, Ratio: g.HeldRatio, Grade: unit.Some(d.holding.grade), Coverage: quotient(float64(c.heldKnown), allocated, all), Source: d.holding.source},
		{Name: rungResident, Ratio: g.ResidentRatio, Grade: unit.Some(resident), Coverage: quotient(c.residentKnown, allocated, all), Source: d.residency()},
		{Name: rungSM, Ratio: sm, Grade: unit.Some(d.grade), Coverage: quotient(c.smKnown, allocated, all), Source: d.counters()},
		{Name: rungTensor, Ratio: g.TensorActiveRatio, Grade: unit.Some(d.grade), Coverage: quotient(c.tensorKnown, allocated, all), Source: d.counters()},
	}
	for i := range rungs {
		rungs[i].worth(allocated/3600e9, price)
	}
	for _, pair := range Inverted(rungs) {
		for i := range rungs {
			if rungs[i].Name == pair[0].Name || rungs[i].Name == pair[1].Name {
				rungs[i].Grade = unit.Some(stat.GradeC)
			}
		}
	}
	return rungs
}

// slack is by how much a rung may lie above one that bounds it: they are counted in windows of their own.
const slack = 0.05

// Inverted returns pairs of rungs of which the second lies above the first, though whoever is on it is on the first: who runs a kernel holds
// the GPU, where an SM is active a kernel is resident, and matrix units work within an SM. Either is wrong, or they are of different times.
func Inverted(ladder []Rung) (pairs [][2]Rung) {
	var above *Rung
	for i := range ladder {
		ratio, ok := ladder[i].Ratio.Get()
		if !ok {
			continue
		}
		if above != nil && ratio > above.Ratio.Or(1)+slack {
			pairs = append(pairs, [2]Rung{*above, ladder[i]})
		}
		above = &ladder[i]
	}
	return pairs
}

// EngineSource ends the source of a resident rung that is the graphics engine's counter: a slice has no GPU-util.
const EngineSource = "graphics engine"

// residency names who told for how long kernels were there.
func (d *device) residency() string {
	switch c := &d.ladder; {
	case c.byEngine > c.residentKnown/2:
		return d.counters() + ", " + EngineSource
	case c.byDriver > c.residentKnown/2:
		return "the driver's GPU-util"
	}
	return d.counters()
}

// price is that of an hour of the device, where it is known what part of a GPU the job has.
func (d *device) price(hourCost float64) Ratio {
	price := priceOf(hourCost)
	switch {
	case !price.IsKnown():
	case d.Note.Parent != "":
		return unit.None[float64]("it is a part of a GPU, and what part of the price is not known")
	case d.shared():
		return unit.None[float64]("the GPU is shared, and what part of the price is this job's is not known")
	}
	return price
}

func priceOf(hourCost float64) Ratio {
	if !(hourCost > 0) {
		return unit.None[float64]("no price of a GPU-hour was given (--gpu-hour-cost)")
	}
	return unit.Some(hourCost)
}

// worth says what a rung comes to in hours and money. Measured in less than half of the time, it says nothing of the whole.
func (r *Rung) worth(hours float64, price Ratio) {
	ratio, ok := r.Ratio.Get()
	if !ok {
		r.Grade, r.GPUHours, r.Cost = unit.None[stat.Grade](r.Ratio.Why()), unit.None[float64](r.Ratio.Why()), unit.None[float64](r.Ratio.Why())
		return
	}
	r.Cost = unit.None[float64](price.Why())
	covered := r.Coverage.Or(0)
	r.Grade = unit.Some(coveredGrade(r.Grade.Or(stat.GradeC), covered))
	if covered < coversHalf {
		why := fmt.Sprintf("it was measured in %.0f %% of the allocated time", 100*covered)
		r.GPUHours, r.Cost = unit.None[float64](why), unit.None[float64](why)
		return
	}
	r.GPUHours = unit.Some(ratio * hours)
	if p, ok := price.Get(); ok {
		r.Cost = unit.Some(ratio * hours * p)
	}
}

// ladderOf adds up the ladders of the job's devices. What is not known of one is not known of all; its ratio is of those that know it.
func ladderOf(gpus []GPU) []Rung {
	out := []Rung{}
	if len(gpus) == 0 {
		return out
	}
	for i, first := range gpus[0].Ladder {
		sum := Rung{Name: first.Name, Source: first.Source, Grade: unit.None[stat.Grade](first.Ratio.Why()), GPUHours: unit.Some(0.0), Cost: unit.Some(0.0)}
		var ratio, coverage mean
		for _, g := range gpus {
			r := &g.Ladder[i]
			if v, ok := r.Ratio.Get(); ok {
				ratio.add(v*float64(g.AllocatedNS), float64(g.AllocatedNS))
				sum.Grade = unit.Some(stat.Worse(sum.Grade.Or(stat.GradeA), r.Grade.Or(stat.GradeC)))
			}
			coverage.add(r.Coverage.Or(0)*float64(g.AllocatedNS), float64(g.AllocatedNS))
			sum.GPUHours, sum.Cost = plus(sum.GPUHours, r.GPUHours), plus(sum.Cost, r.Cost)
			if r.Source != sum.Source {
				sum.Source = "several sources"
			}
		}
		sum.Ratio, sum.Coverage = ratio.value(first.Ratio.Why()), coverage.value("no time was allocated")
		out = append(out, sum)
	}
	return out
}

// plus adds what is known; what is not known on either side is not known of the sum.
func plus(a, b Ratio) Ratio {
	x, ok := a.Get()
	if !ok {
		return a
	}
	y, ok := b.Get()
	if !ok {
		return b
	}
	return unit.Some(x + y)
}

// holders names who has the device: ranks of the job, and whom a scheduler assigned it to.
func (d *device) holders(g *GPU) {
	for _, k := range d.ranks {
		name := fmt.Sprintf("rank %d (pid %d)", k.Number, k.Declaration.PID)
		if k.guessed() {
			name = fmt.Sprintf("rank %d (pid %d, a guess)", k.Number, k.Declaration.PID)
		}
		g.Holders = append(g.Holders, name)
	}
	g.Shared, g.AssignedBy = d.sharing(), unit.None[string](notTold)
	for _, a := range d.Allocations {
		for _, h := range a.Holders {
			if name := holderName(h); name != "" && !slices.Contains(g.Holders, name) && len(g.Holders) < 64 {
				g.Holders = append(g.Holders, name)
			}
		}
	}
	if by := d.assignedBy(); by != "" {
		g.AssignedBy = unit.Some(by)
	}
	g.Processes = unit.None[int]("no source listed processes")
	most := 0
	for _, l := range d.Looks {
		most = max(most, l.Processes)
	}
	if d.holding.looked {
		g.Processes = unit.Some(most)
	}
	if d.holding.hidden > 0 && most == 0 {
		g.Processes = unit.None[int](d.whyNotHeld())
	}
}

// assignedBy is who told whom the device is assigned to, the best there is; "" if nobody could.
func (d *device) assignedBy() string {
	for _, by := range []string{recording.AllocatedByKubernetes, recording.AllocatedBySlurm, recording.AllocatedByExporter, recording.AllocatedByProcesses} {
		if slices.ContainsFunc(d.Allocations, func(a recording.AllocationNote) bool { return a.By == by && a.Holders != nil }) {
			return by
		}
	}
	return ""
}

const (
	notShared = "no"
	notTold   = "nobody told whom it is assigned to"
)

// sharing says how several holders share the device: as whoever assigns it says, or because several had it for a part of the time that
// counts. A monitor that looks in, or the job before that is not gone yet, makes no other's work of its counters.
func (d *device) sharing() unit.Maybe[string] {
	told := unit.None[string](notTold)
	several := map[string]int64{}
	for i, a := range d.Allocations {
		if a.Shared != "" {
			return unit.Some(a.Shared)
		}
		if len(a.Holders) > 1 {
			until := max(d.Node.End, int64(a.T))
			for _, later := range d.Allocations[i+1:] {
				if later.By == a.By {
					until = int64(later.T)
					break
				}
			}
			several[a.By] += until - int64(a.T)
		}
		if a.By != recording.AllocatedByProcesses && a.Holders != nil {
			told = unit.Some(notShared)
		}
	}
	for _, ns := range several {
		if float64(ns) >= sharedFor*float64(d.Node.End-d.Node.Begin) {
			return unit.Some("several holders")
		}
	}
	return told
}

// sharedFor is the share of the run from which several holders count.
const sharedFor = 0.05

// shared reports whether several holders have the device: its counters are of all of them together, and say nothing of one.
func (d *device) shared() bool { return d.sharing().Or(notShared) != notShared }

const ofAll = "the GPU is shared with other jobs, and its counters are of all of them together"

func holderName(h recording.Holder) string {
	switch {
	case h.Pod != "" && h.Namespace != "":
		return "pod " + h.Namespace + "/" + h.Pod
	case h.Pod != "":
		return "pod " + h.Pod
	case h.Job != "":
		return "job " + h.Job
	case len(h.PIDs) > 0:
		return fmt.Sprintf("pid %d", h.PIDs[0])
	}
	return ""
}

const noCounter = "no source counted it"

// Fields of device.pipes.
const (
	pipeFP32 = iota
	pipeDRAM
	pipePCIeIn
	pipeFields
)

func (d *device) addPipes(w *load.Window, ns float64) {
	for i, v := range [pipeFields]float32{w.FP32, w.DRAM, w.PCIeIn} {
		if v == v {
			d.pipes[i].add(float64(v)*ns, ns)
		}
	}
}

func (d *device) pipesRow() Pipes {
	p, f := &d.pipes, &d.Further
	of := func(sum [2]float64) Ratio { return quotient(sum[0], sum[1], noCounter) }
	return Pipes{FP32: p[pipeFP32].value(noCounter), DRAM: p[pipeDRAM].value(noCounter), Occupancy: of(f.Occupancy),
		PCIeIn: p[pipePCIeIn].value(noCounter), PCIeOut: of(f.PCIeOut), NVLinkIn: of(f.NVLinkIn), NVLinkOut: of(f.NVLinkOut)}
}

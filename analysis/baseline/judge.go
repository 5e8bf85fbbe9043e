package baseline

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Conclusions.
const (
	InputPipeline = "input-pipeline" // cached batches make the steps faster
	NotInput      = "not-input"      // they do not, by more than Relevant
	Inconclusive  = "inconclusive"
)

// Relevant is the smallest difference worth a finding; Excluded is the largest that "not the input" still allows.
const (
	Relevant = 0.02
	Excluded = 0.05
)

// Setup is what Judge needs to know beside the blocks.
type Setup struct {
	Device   bool       // the job computes on a device, so launches may run ahead of it
	Emulated bool       // that device is the emulated one
	Grade    stat.Grade // of the GPU's counters
	Counters string     // who read them
}

// Outcome is what the test shows. A leg without counted blocks is left out.
type Outcome struct {
	Legs         map[string]Leg
	Ceiling      unit.Maybe[stat.Estimate] // live step ÷ host-cached step
	Saved        unit.Maybe[stat.Estimate] // seconds per step
	Copy         unit.Maybe[stat.Estimate] // share of a live step
	Interference unit.Maybe[float64]       // share of a live step
	Unexplained  unit.Maybe[float64]       // share of a live step
	Pairs        int
	Skipped      []Skipped
	Conclusion   string
	Why          string
	Grade        stat.Grade
}

// Leg is one arm of the test.
type Leg struct {
	Seconds unit.Maybe[stat.Estimate] // per step
	SM      unit.Maybe[stat.Estimate]
	Blocks  int
	Steps   int
}

// Skipped is a leg that did not run, or blocks of it that do not count.
type Skipped struct{ Leg, Reason string }

// Judge compares the blocks.
func Judge(blocks []Block, setup Setup) Outcome {
	blocks = slices.Clone(blocks)
	slices.SortFunc(blocks, func(a, b Block) int { return cmp.Compare(a.Number, b.Number) })
	o := Outcome{Legs: map[string]Leg{}, Grade: setup.timed(blocks)}
	for _, leg := range recording.Legs {
		if l, ok := setup.arm(blocks, leg, o.Grade); ok {
			o.Legs[leg.String()] = l
		}
	}
	o.Skipped = voids(blocks)
	cached := pairs(blocks, recording.LegHostCached)
	o.Pairs = len(cached)
	o.ceiling(cached, setup.source())
	o.shares(blocks, cached, setup.source())
	o.conclude(setup)
	return o
}

// timed is the grade of the block times: with a device that was not synchronised at both ends they are the host's guess.
func (s Setup) timed(blocks []Block) stat.Grade {
	if !s.Device {
		return stat.GradeA // all the work is the host's: its clock is exact
	}
	for _, b := range blocks {
		if b.Void == 0 && !b.DeviceTimed {
			return stat.GradeC
		}
	}
	return stat.GradeA
}

func (s Setup) source() string {
	switch {
	case s.Emulated:
		return "emulated device"
	case s.Device:
		return "host clock, device synchronised"
	}
	return "host clock"
}

func (s Setup) arm(blocks []Block, leg recording.Leg, grade stat.Grade) (l Leg, ok bool) {
	var times []float64
	var sm *stat.Ratio = stat.Batch(1)
	windows := 0
	for _, b := range blocks {
		if b.Leg != leg || b.Void != 0 {
			continue
		}
		times = append(times, b.Seconds)
		l.Steps += b.Steps
		if b.SMSeconds > 0 {
			sm.Add(b.SM, b.SMSeconds)
			windows += b.Windows
		}
	}
	l.Blocks = len(times)
	if l.Blocks == 0 {
		return l, false
	}
	l.Seconds = unit.None[stat.Estimate]("one block says nothing about its spread")
	if mean, ok := stat.Mean(times); ok {
		l.Seconds = unit.Some(mean.Clamp(0, math.Inf(1)).Estimate(l.Blocks, grade, s.source()))
	}
	l.SM = unit.None[stat.Estimate]("too few counter windows lie wholly inside the blocks")
	if i, ok := sm.Interval(); ok {
		l.SM = unit.Some(i.Clamp(0, 1).Estimate(windows, s.Grade, s.Counters))
	}
	return l, true
}

// voids lists why blocks do not count, once per leg and reason.
func voids(blocks []Block) (skipped []Skipped) {
	type key struct {
		leg  recording.Leg
		void uint32
	}
	count, all := map[key]int{}, map[recording.Leg]int{}
	var order []key
	for _, b := range blocks {
		all[b.Leg]++
		if b.Void == 0 {
			continue
		}
		k := key{b.Leg, b.Void}
		if count[k] == 0 {
			order = append(order, k)
		}
		count[k]++
	}
	for _, k := range order {
		skipped = append(skipped, Skipped{k.leg.String(), fmt.Sprintf("%d of %d blocks: %s", count[k], all[k.leg], Reason(k.void))})
	}
	return skipped
}

// pair is a block of some leg and the live block before it.
type pair struct{ live, other Block }

// pairs joins every counted block of a leg with the nearest counted live block before it.
//
//	live 1   host 2   live 3   host 4   busy 5   live 6 (void)   host 7
//	  '--------'        '--------'                                  pairs of host-cached; 7 has no live block of its own
//	                    '-----------------'                         pair of host-cached-busy
func pairs(blocks []Block, leg recording.Leg) []pair {
	return joined(blocks, func(b Block) bool { return b.Leg == leg })
}

// joined are the pairs of the blocks that are wanted.
func joined(blocks []Block, wanted func(Block) bool) (all []pair) {
	live := -1
	for i, b := range blocks {
		switch {
		case b.Leg == recording.LegLive && b.Void == 0:
			live = i
		case b.Leg == recording.LegLive:
			live = -1
		case wanted(b) && b.Void == 0 && live >= 0:
			all = append(all, pair{blocks[live], b})
		}
	}
	return all
}

// Against compares some blocks, those of one trial, with the live blocks before them: seconds per step, and what share of a live step
// each saves. Blocks are in the order of their numbers.
func Against(blocks []Block, of func(Block) bool) (seconds, saved []float64) {
	for _, p := range joined(blocks, of) {
		if p.live.Seconds > 0 && p.other.Seconds > 0 {
			seconds = append(seconds, p.other.Seconds)
			saved = append(saved, 1-p.other.Seconds/p.live.Seconds)
		}
	}
	return seconds, saved
}

// ceiling is the geometric mean of the pairs' ratios: a pair in which everything is half as fast counts as much as any other.
func (o *Outcome) ceiling(cached []pair, source string) {
	const why = "fewer than two pairs of a live and a cached block"
	o.Ceiling, o.Saved = unit.None[stat.Estimate](why), unit.None[stat.Estimate](why)
	var logs, saved []float64
	for _, p := range cached {
		if p.live.Seconds > 0 && p.other.Seconds > 0 {
			logs = append(logs, math.Log(p.live.Seconds/p.other.Seconds))
			saved = append(saved, p.live.Seconds-p.other.Seconds)
		}
	}
	if i, ok := stat.Mean(logs); ok {
		i = stat.Interval{Value: math.Exp(i.Value), Low: math.Exp(i.Low), High: math.Exp(i.High)}
		if !math.IsInf(i.High, 0) {
			o.Ceiling = unit.Some(i.Estimate(len(logs), o.Grade, source))
		}
	}
	if i, ok := stat.Mean(saved); ok {
		o.Saved = unit.Some(i.Estimate(len(saved), o.Grade, source))
	}
}

// shares splits what the live step is longer by. The wait that counts is the exposed one where the device's clock says so: launches
// that run ahead hide the rest. What cached blocks wait for their batches in memory belongs to both sides.
func (o *Outcome) shares(blocks []Block, cached []pair, source string) {
	const why = "the leg did not run"
	o.Copy, o.Interference = unit.None[stat.Estimate](why), unit.None[float64](why)
	o.Unexplained = unit.None[float64]("no pair of a live and a cached block")
	live, host := means(cached)
	if !(live.Seconds > 0) {
		return
	}
	memory, device := relative(blocks, recording.LegHostCached), relative(blocks, recording.LegDeviceCached)
	if i, ok := stat.Difference(memory, device); ok {
		o.Copy = unit.Some(i.Estimate(len(device), o.Grade, source))
	}
	o.Interference = unit.Float(average(relative(blocks, recording.LegHostCachedBusy))-average(memory), why)
	wait := live.Wait - host.Wait
	if !math.IsNaN(live.Exposed) {
		wait = live.Exposed
		if !math.IsNaN(host.Exposed) {
			wait -= host.Exposed
		}
	}
	o.Unexplained = unit.Float((live.Seconds-host.Seconds-wait)/live.Seconds-o.Interference.Or(0), why)
}

// relative returns the steps of a leg as shares of the live steps before them: what drifts takes both along.
func relative(blocks []Block, leg recording.Leg) (shares []float64) {
	for _, p := range pairs(blocks, leg) {
		if p.live.Seconds > 0 {
			shares = append(shares, p.other.Seconds/p.live.Seconds)
		}
	}
	return shares
}

// average is NaN without values.
func average(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// means averages both sides of pairs; NaN without pairs, and where a pair does not know.
func means(joined []pair) (live, other Block) {
	n := float64(len(joined))
	add := func(to *Block, b Block) {
		to.Seconds += b.Seconds / n
		to.Wait += b.Wait / n
		to.Exposed += b.Exposed / n
	}
	for _, p := range joined {
		add(&live, p.live)
		add(&other, p.other)
	}
	if n == 0 {
		live.Seconds, other.Seconds = math.NaN(), math.NaN()
	}
	return live, other
}

// conclude says what the ceiling proves. The interval decides, not the value: it must lie wholly above 1 to blame the input
// pipeline, and wholly below 1.05 to acquit it.
func (o *Outcome) conclude(setup Setup) {
	ceiling, ok := o.Ceiling.Get()
	o.Conclusion = Inconclusive
	switch {
	case !ok:
		o.Why = o.Ceiling.Why()
	case o.Grade == stat.GradeC:
		o.Why = "the device was not synchronised at the ends of the blocks, so launches running ahead may pass for fast steps"
	case ceiling.Low > 1 && ceiling.Value > 1+Relevant:
		o.Conclusion = InputPipeline
		o.Why = fmt.Sprintf("with batches already in memory a step is %.2f times as fast (95 %% interval %.2f–%.2f, %d pairs of blocks)",
			ceiling.Value, ceiling.Low, ceiling.High, ceiling.N)
	case ceiling.High < 1+Excluded:
		o.Conclusion = NotInput
		o.Why = fmt.Sprintf("with batches already in memory a step is at most %.0f %% faster (%d pairs of blocks)",
			math.Max(0, 100*(ceiling.High-1)), ceiling.N)
	default:
		o.Why = fmt.Sprintf("the blocks vary too much: the ceiling lies between %.2f and %.2f", ceiling.Low, ceiling.High)
	}
}

package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// decider is the rank with the longest wait in its steps: in a job whose ranks wait for one another, it sets the pace.
func (r *run) decider() *rank {
	var longest *rank
	for _, k := range r.ranked {
		if k.steady.steps == 0 || k.unfed() {
			continue
		}
		if longest == nil || k.steady.perStep(k.steady.wait) > longest.steady.perStep(longest.steady.wait) {
			longest = k
		}
	}
	return longest
}

func (st *steadyState) perStep(ns int64) float64 { return float64(ns) / 1e9 / float64(st.steps) }

// parameters is what the loader's model needs to know of a rank: its step, and the loader it waits for most.
func (r *run) parameters(k *rank) loader.Parameters {
	b, l := k.crew, k.slowest
	p := loader.Parameters{Step: r.stepTimes(k), Batch: b.batchCosts(), Solo: b.soloCosts(), Host: r.cores(k, b), Device: k.usage, Tape: k.played, GPUs: len(r.ranked)}
	p.Device.Clock = r.slowestClock(k)
	p.Inside = b.inside()
	p.Around = r.around(k)
	if l != nil {
		workers, known := k.workers(l.ID)
		p.Args = b.arguments(workers)
		p.Args.Unseen = !known
		p.Epoch = k.start
		p.Peers = r.peers(k)
	}
	return p
}

// inStep is how much the steps of ranks may differ that wait for one another.
const inStep = 0.02

// peers are the loaders of ranks that make their steps together with this one, those that wait longest first.
func (r *run) peers(k *rank) (peers []loader.Peer) {
	own, ok := k.crew.build.Value()
	if !ok || !(own > 0) {
		return nil
	}
	step := k.steady.perStep(k.steady.time)
	others := slices.Clone(r.ranked)
	slices.SortStableFunc(others, func(a, b *rank) int {
		return cmp.Compare(waits(b), waits(a))
	})
	for _, o := range others {
		if o == k || o.steady.steps == 0 || o.slowest == nil || len(o.played) == 0 {
			continue
		}
		build, ok := o.crew.build.Value()
		if ok && math.Abs(o.steady.perStep(o.steady.time)-step) <= inStep*step {
			peers = append(peers, loader.Peer{Tape: o.played, Build: build / own})
		}
	}
	return peers
}

// waits is the wait of a step of a rank, 0 without steps.
func waits(k *rank) float64 {
	if k.steady.steps == 0 {
		return 0
	}
	return k.steady.perStep(k.steady.wait)
}

// model finds what the loader's model needs to know of the rank, should it set the pace.
func (k *rank) model() {
	k.crew = newCrew(0)
	if k.slowest = k.slowestLoader(); k.slowest != nil {
		k.crew = newCrew(k.slowest.ID)
		k.crew.add(k, k.slowest)
		k.addFetches(map[uint16]*crew{k.slowest.ID: k.crew})
		k.start = k.epochStart(k.slowest, k.crew)
		k.stream = k.streamOf(k.slowest)
		k.grow(k.slowest)
		k.played = k.tape(k.slowest)
		k.film = film{}
	}
	k.usage = k.deviceUse()
}

// slowestLoader is the training loader that the rank waits for most.
func (k *rank) slowestLoader() (slowest *load.Loader) {
	wait := map[uint16]int64{}
	last, sum := uint16(0), int64(0) // most fetches are of the loader of the one before
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if !k.training(f) || f.Test() {
			continue
		}
		if f.Loader != last {
			wait[last] += sum
			last, sum = f.Loader, 0
		}
		sum += f.Wait()
	}
	wait[last] += sum
	for _, l := range k.Loaders {
		if k.trains.has(l.ID) && (slowest == nil || wait[l.ID] > wait[slowest.ID]) {
			slowest = l
		}
	}
	return slowest
}

func (r *run) stepTimes(k *rank) loader.StepTimes {
	st := &k.steady
	ns := func(s *stat.Ratio, grade stat.Grade, source string) Est {
		return scaled(s, 1e-9, st.steps, grade, source, noSteady)
	}
	t := loader.StepTimes{
		Seconds: ns(st.mean, stat.GradeA, "hook clock"),
		Wait:    ns(st.waited, stat.GradeA, "hook clock"),
		Exposed: unit.None[stat.Estimate](noDeviceClock),
		Fetches: quotient(float64(st.fetches), float64(st.steps), noSteady),
		MainCPU: unit.None[float64]("the training thread's CPU clock was not read"),
		Handoff: quotient(float64(st.handoff)/1e9, float64(st.joined), "no fetch could be joined with its batch"),

		HandoffReady: st.arrivals.ready(),
		HandoffLate:  st.arrivals.late.value("no batch was waited for"),
	}
	if st.seen() {
		t.Exposed = ns(st.idled, stat.GradeB, "device events")
	}
	if st.clocked > 0 && k.FetchClocked > 0 {
		inside := float64(k.FetchCPU) / float64(k.FetchClocked) * t.Fetches.Or(1)
		t.MainCPU = unit.Some(max(0, (float64(st.cpu)/float64(st.clocked)-inside)/1e9))
	}
	if part := k.crewPart(); part < 1 { // of several loaders side by side, only the slowest is described
		t.Fetches = quotient(part*float64(st.fetches), float64(st.steps), noSteady)
	}
	r.testTimes(&t)
	return t
}

// crewPart is the part of the batches for training that come from the loader the rank waits for most.
func (k *rank) crewPart() float64 {
	if len(k.trains.ids) < 2 || k.crew == nil || k.slowest == nil {
		return 1
	}
	all := 0
	for _, l := range k.Loaders {
		if k.trains.has(l.ID) {
			all += l.Fetches
		}
	}
	if all == 0 || k.slowest.Fetches == 0 {
		return 1
	}
	return float64(k.slowest.Fetches) / float64(all)
}

// testTimes adds what the cached-data test measured, where it may be believed.
func (r *run) testTimes(t *loader.StepTimes) {
	const why = "no cached-data test timed it on the device"
	t.Live, t.Cached, t.Copy, t.Interference = unit.None[stat.Estimate](why), unit.None[stat.Estimate](why), unit.None[stat.Estimate](why), unit.None[float64](why)
	if r.test == nil || r.test.Grade == stat.GradeC {
		return
	}
	live, ok := t.Seconds.Get()
	if !ok {
		return
	}
	if leg, ok := r.test.Legs[recording.LegLive.String()]; ok {
		t.Live = leg.Seconds
	}
	if leg, ok := r.test.Legs[recording.LegHostCached.String()]; ok {
		t.Cached = leg.Seconds
	}
	if c, ok := r.test.Copy.Get(); ok {
		t.Copy = unit.Some(stat.Estimate{Value: max(0, c.Value) * live.Value, Low: max(0, c.Low) * live.Value, High: max(0, c.High) * live.Value,
			N: c.N, Grade: c.Grade, Source: c.Source})
	}
	if i, ok := r.test.Interference.Get(); ok {
		t.Interference = unit.Some(max(0, i) * live.Value)
	}
}

func (b *crew) batchCosts() loader.BatchCosts {
	num := func(field int) Ratio { return b.costs[field].value(noCost) }
	c := loader.BatchCosts{
		Wall:       estimate(b.build, b.builds, stat.GradeA, "hook clock", noBuilds),
		CPU:        estimate(b.cpu, b.cpu.N(), stat.GradeA, "thread CPU clock", noCost),
		ProcessCPU: num(load.CostProcessCPU),
		RunQueue:   num(load.CostRunQueue),
		OffCPU:     estimate(b.off, b.off.N(), stat.GradeA, "hook and scheduler clocks", noCost),
		Collate:    num(load.CostCollate),
		CV:         b.variation(),
		Samples:    num(load.CostSamples),
		Files:      num(load.CostFiles),
		Requests:   num(load.CostRequests),
		FromDisk:   num(load.CostReadBytes),
		Bytes:      num(load.CostBytes),
		Tensors:    num(load.CostTensors),
		Sleeps:     num(load.CostSleeps),
	}
	c.Read, _ = b.bytes()
	reads := b.reads(c.Read, c.Files, c.Requests)
	c.PerReading, c.ReadTimes, c.Set = reads.PerReading, reads.PerEpoch, reads.SetBytes
	if !reads.Complete.Or(false) {
		c.Set = unit.None[float64]("not all of the files were read once")
	}
	if n, ok := b.note.Arguments.BatchSize.Get(); ok && !c.Samples.IsKnown() && n > 0 {
		c.Samples = unit.Some(float64(n))
	}
	return c
}

// variation is the standard deviation of a build over its mean.
func (b *crew) variation() Ratio {
	sum, n := b.build.Sums()
	if n < 2 || !(sum > 0) {
		return unit.None[float64](noBuilds)
	}
	mean := sum / n
	return unit.Float(math.Sqrt(math.Max(0, b.squares/n-mean*mean))/mean, noBuilds)
}

// tooUneven is the variation of builds from which the few that were built alone say nothing of the others: one slow one in them, or none,
// and their mean is several times that of all (a tail of 0.4 s in every twentieth build).
const tooUneven = 0.5

func (b *crew) soloCosts() loader.SoloCosts {
	const why = "no batch was built alone"
	if v, ok := b.variation().Get(); ok && v >= tooUneven {
		const vary = "builds vary too much for the few that were built alone to be compared with the others"
		return loader.SoloCosts{Wall: unit.None[stat.Estimate](vary), OffCPU: unit.None[stat.Estimate](vary)}
	}
	return loader.SoloCosts{Wall: meanOf(b.solo, why), OffCPU: meanOf(b.soloOff, why)}
}

func (b *crew) arguments(workers int) loader.Arguments {
	n := b.note.Arguments
	return loader.Arguments{
		Workers:     workers,
		Prefetch:    either(b.prefetch, small(n.PrefetchFactor)),
		Persistent:  n.PersistentWorkers,
		PinMemory:   n.PinMemory,
		InOrder:     n.InOrder,
		Iterable:    b.note.Iterable,
		StartMethod: n.Context,
		BatchSize:   small(n.BatchSize),
		Watched:     b.note.Kind == "watch",
	}
}

func either[T any](a, b unit.Maybe[T]) unit.Maybe[T] {
	if a.IsKnown() {
		return a
	}
	return b
}

// small is a count that fits an int; others are nonsense.
func small(n unit.Maybe[int64]) unit.Maybe[int] {
	v, ok := n.Get()
	if !ok {
		return unit.None[int](n.Why())
	}
	if v < 0 || v > math.MaxInt32 {
		return unit.None[int]("the recorded number cannot be")
	}
	return unit.Some(int(v))
}

func (r *run) cores(k *rank, b *crew) loader.Cores {
	h := r.machine(k.Node)
	sum, weight := k.Node.Usage.Limits.Sum(load.LimitsCPUSet, nil)
	c := loader.Cores{Usable: h.UsableCores, Quota: h.QuotaCores, Online: h.Cores, Busy: h.BusyCores, Foreign: h.ForeignCores,
		Cpuset: quotient(sum, weight, noAgent), WorkerRunQueue: h.WorkerRunQueue, Throttled: h.ThrottledRatio}
	for _, o := range r.ranked {
		if o.Node == k.Node {
			c.Ranks++
		}
	}
	if b.threads > 0 {
		c.ThreadsPerWorker = unit.Some(b.threads)
	}
	return c
}

// deviceUse is what the rank's GPU did during steady steps, and only then.
func (k *rank) deviceUse() loader.Device {
	d := loader.Device{Launches: unit.None[float64]("no source counts launches")}
	whole := func(why string) loader.Device {
		for _, v := range []*Ratio{&d.Resident, &d.SMActive, &d.SMComputing, &d.Tensor, &d.FP32, &d.DRAM, &d.Power} {
			*v = unit.None[float64](why)
		}
		return d
	}
	switch {
	case k.device == nil:
		return whole(noWindow)
	case k.device.shared():
		return whole(ofAll)
	}
	var resident, sm, tensor, fp32, dram, in mean
	for i := range k.device.Windows {
		w := &k.device.Windows[i]
		ns := float64(k.steady.runs.overlap(w.Begin, w.End))
		if ns == 0 || w.Untrusted {
			continue
		}
		sum := func(of *mean, v float32) {
			if v == v {
				of.add(float64(v)*ns, ns)
			}
		}
		sum(&resident, w.Resident)
		sum(&sm, w.SM)
		sum(&tensor, w.Tensor)
		sum(&fp32, w.FP32)
		sum(&dram, w.DRAM)
		sum(&in, w.PCIeIn)
	}
	steady := float64(k.steady.runs.within(k.steady.runs))
	of := func(m mean, why string) Ratio {
		if m.weight > 0 && m.weight < coversHalf*steady { // it says nothing of the rest
			return unit.None[float64](fmt.Sprintf("it was measured in %.0f %% of the steady steps", 100*m.weight/steady))
		}
		return m.value(why)
	}
	d.Resident, d.SMActive = of(resident, noWindow), of(sm, noActivity)
	d.Tensor, d.FP32, d.DRAM = of(tensor, noCounter), of(fp32, noCounter), of(dram, noCounter)
	d.SMComputing = unit.None[float64](noActivity)
	if c, ok := k.device.unmixed.computing.Get(); ok {
		d.SMComputing = unit.Some(c.Value)
	}
	d.Power = k.device.stateRow().WorkPower
	d.Emulated = emulated(k.device)
	d.Clock, d.Link = k.clock(), k.device.linkUse(of(in, noCounter))
	return d
}

// linkUse is the PCIe link of the device at work.
func (d *device) linkUse(in Ratio) loader.Link {
	sum, weight := d.States.Sum(load.StateNarrow, nil)
	l := loader.Link{Narrow: quotient(sum, weight, noWork), In: in}
	if link, ok := d.link(); ok {
		l.Generation, l.Lanes = int(link.Generation), int(link.Width)
		l.MostGeneration, l.MostLanes = int(link.MaxGeneration), int(link.MaxWidth)
	}
	return l
}

// epochStart is how the loader's epochs begin.
//
//	iterator made          worker begins          first batch sent
//	     |<--- worker start --->|<--- first build --->|
func (k *rank) epochStart(l *load.Loader, b *crew) loader.EpochStart {
	e := loader.EpochStart{Seconds: meanOf(b.starts, "no epoch start was recorded"), Batches: b.length, Epochs: b.epochs,
		Share: quotient(float64(k.steady.opening), float64(k.trained()), "no live training was recorded")}
	if n, ok := b.note.Length.Get(); ok && !e.Batches.IsKnown() && n >= 0 && n < math.MaxInt32 {
		e.Batches = unit.Some(int(n))
	}
	if !e.Batches.IsKnown() {
		if n := k.wholeEpochs(l); n > 0 {
			e.Batches = unit.Some(n)
		}
	}
	made := map[uint32]int64{}
	var begins []int64
	for _, i := range l.Iterators {
		if it := &k.Iterators[i]; k.live.holds(it.Begin) {
			made[it.Epoch] = it.Begin
			begins = append(begins, it.Begin)
		}
	}
	var start, first mean
	for _, builds := range l.Builds {
		for i := range builds.Batches {
			batch := &builds.Batches[i]
			if batch.Index != 0 {
				continue
			}
			if begin, ok := made[batch.Epoch]; ok && batch.Begin >= begin {
				start.add(float64(batch.Begin-begin)/1e9, 1)
				first.add(float64(batch.End-batch.Begin)/1e9, 1)
			}
		}
	}
	e.WorkerStart, e.FirstBuild = start.value(noBuilds), first.value(noBuilds)
	e.Wall = unit.None[float64]("no whole epoch was recorded")
	if n := len(begins); n > 1 {
		e.Wall = unit.Some(float64(begins[n-1]-begins[0]) / 1e9 / float64(n-1))
	}
	return e
}

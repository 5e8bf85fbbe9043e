package analysis

import (
	"math"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// ranks writes every training process's row.
func (r *run) ranks() {
	for _, k := range r.ranked {
		row := k.row()
		row.EndedEarlySeconds = r.early(k)
		r.out.Ranks = append(r.out.Ranks, row)
	}
}

// early is how long the process was gone when the last process of another rank ended. A rank that was started again has not left.
func (r *run) early(k *rank) Ratio {
	if k.Gone == load.Unknown || k.Outlived {
		return unit.None[float64]("nobody saw it end")
	}
	last, others := k.Gone+k.Node.Shift, false
	for _, o := range r.ranked {
		switch {
		case o.Number == k.Number && o.Gone > k.Gone:
			return unit.None[float64]("the rank was started again")
		case o.Number != k.Number && o.Gone != load.Unknown:
			last, others = max(last, o.Gone+o.Node.Shift), true
		}
	}
	if !others {
		return unit.None[float64]("it is the only rank")
	}
	return unit.Some(float64(last-k.Gone-k.Node.Shift) / 1e9)
}

const noSteady = "no steps outside epoch starts and warm-up were recorded"

func (k *rank) row() Rank {
	d := &k.Declaration
	st := &k.steady
	row := Rank{Rank: k.Number, Host: k.Node.Host, PID: d.PID, Steps: k.steps, Ended: k.end(),
		LocalRank: maybe(d.LocalRank, "the launcher did not say"),
		Restart:   maybe(d.Restart, "the launcher did not say"),
		GPUUUID:   unit.None[string]("it runs on no GPU that was watched"), GPUGuessed: k.guessed(),
	}
	switch {
	case k.GPU() != "":
		row.GPUUUID = unit.Some(k.GPU())
	case k.device != nil && k.device.Note.UUID != "":
		row.GPUUUID = unit.Some(k.device.Note.UUID)
	}
	row.DataWaitShare = quotient(float64(st.wait), float64(st.time), noSteady)
	row.ExposedWaitShare = unit.None[float64](noDeviceClock)
	if st.seen() {
		row.ExposedWaitShare = valueOf(estimate(st.exposed, st.exposed.N(), stat.GradeB, "", noSteady))
	}
	row.MeanStepSeconds = quotient(float64(st.time)/1e9, float64(st.steps), noSteady)
	row.MainCPUCores = k.mainCPU()
	switch {
	case k.unfed():
		row.DataWaitShare, row.ExposedWaitShare = unit.None[float64](noFetch), unit.None[float64](noFetch)
	case st.steps == 0:
		row.DataWaitShare = k.totals()
	}
	return row
}

const noFetch = "steps were seen, and no fetch of a loader that feeds them"

const noDeviceClock = "no device clock enclosed the fetches"

// seen reports whether the device's clock enclosed nearly all steps; the few others are like them.
func (st *steadyState) seen() bool {
	return st.exposed != nil && st.steps > 0 && st.wait > 0 && 5*st.exposed.N() >= 4*st.steps && float64(st.blind) <= 0.2*float64(st.wait)
}

func maybe[T any](p *T, why string) unit.Maybe[T] {
	if p == nil {
		return unit.None[T](why)
	}
	return unit.Some(*p)
}

// count counts the steps that the rank was seen to make. Where records are missing, its own counts say how many they were.
func (k *rank) count() { k.steps = k.countSteps() }

func (k *rank) countSteps() int {
	n := 0
	if !k.byFetch {
		if n = len(k.Steps); len(k.Gaps) > 0 && n > 0 {
			n = max(n, int(k.Steps[n-1].Number))
		}
		return n
	}
	if l := k.Loader(k.primary); k.lossy(l) && k.TestBegan == load.Unknown {
		trained := l.Sums.Fetches.Or(0)
		if !k.noGrad {
			trained -= min(trained, l.Sums.NoGrad.Or(0))
		}
		return int(min(trained, math.MaxInt32))
	}
	for i := range k.Fetches {
		if f := &k.Fetches[i]; f.Loader == k.primary && k.training(f) && f.Delivered() {
			n++
		}
	}
	return n
}

// lossy reports whether the totals of a loader tell more than its records.
func (k *rank) lossy(l *load.Loader) bool {
	return l != nil && l.Summed && (k.Fetched == 0 || len(k.Gaps) > 0 && l.Sums.Fetches.Or(0) > uint64(l.Fetches))
}

// end says how the process ended.
func (k *rank) end() string {
	switch {
	case k.Replaced:
		return "restarted"
	case k.Finished:
		return "normally"
	case k.Parked:
		return "parked"
	case k.Outlived:
		return "running"
	case k.Node.Manifest.EndedBy.Or("") == recording.EndedBySlice:
		return "running"
	case k.Node.Manifest.EndedMonotonic.IsKnown(): // the recording reaches that far
		switch code, ok := k.Node.Manifest.ExitCode.Get(); {
		case ok && code == 0:
			return "unknown" // os._exit runs nothing of ours; or a launcher bore its end
		case ok && code > 0 && code < 128:
			return "failed" // the command said so itself; above 128 a shell speaks of a signal
		}
		return "killed"
	case k.Node.Manifest.Format != "" && k.Node.End-k.End < 5e9:
		return "running"
	}
	return "unknown"
}

// mainCPU is the cores the training process used: as the agent saw it, workers apart; else its training thread alone.
func (k *rank) mainCPU() Ratio {
	if p := k.Node.Usage.Processes[uint32(k.Declaration.PID)]; p != nil && p.Role == recording.RoleMain {
		sum, seconds := p.Usage.Sum(load.ProcessCPU, k.live.holds)
		if seconds > 0 {
			return unit.Some(sum / seconds)
		}
	}
	st := &k.steady
	if st.clocked == st.steps {
		return quotient(float64(st.cpu), float64(st.time), noSteady)
	}
	return unit.None[float64]("its CPU time was not read")
}

// totals is the wait share from the totals that survive when the records of a ring were overwritten. They count every fetch,
// epoch starts included.
func (k *rank) totals() Ratio {
	wait, all, _ := k.sums()
	return quotient(wait, all, noSteady)
}

// sums adds up the waits of the loaders that train: those whose fetches are not all made with autograd off. All is the time of the
// loader that was seen longest, for what lies between the fetches of one holds the fetches of another.
func (k *rank) sums() (wait, all float64, fetches int) {
	for _, l := range k.Loaders {
		n := l.Sums.Fetches.Or(0)
		if !l.Summed || n == 0 || n > 1<<40 || l.Sums.NoGrad.Or(0) >= n {
			continue
		}
		waited, between := float64(l.Sums.WaitNS.Or(0)), float64(l.Sums.BetweenNS.Or(0))
		wait += waited
		all = max(all, waited+between)
		fetches += int(n)
	}
	return min(wait, all), all, fetches
}

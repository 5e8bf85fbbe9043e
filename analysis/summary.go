package analysis

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// summary writes the job as a whole: what ran, and the step that stands for all others.
func (r *run) summary() {
	r.jobRow()
	r.stepRow()
}

func (r *run) what() {
	out := r.out
	first := r.job.Nodes[0].Manifest
	out.StartedAt = unit.None[time.Time]("no agent wrote when it began")
	if !first.StartedAt.IsZero() {
		out.StartedAt = unit.Some(first.StartedAt)
	}
	out.EndedBy, out.ExitCode = unit.None[string]("the recording was not finished"), unit.None[int]("the command's exit was not seen")
	for _, n := range r.job.Nodes {
		out.Nodes = append(out.Nodes, n.Host)
		if n.Manifest.EndedBy.IsKnown() && !out.EndedBy.IsKnown() {
			out.EndedBy = n.Manifest.EndedBy
		}
		if n.Manifest.ExitCode.IsKnown() && !out.ExitCode.IsKnown() {
			out.ExitCode = n.Manifest.ExitCode
		}
	}
}

func (r *run) jobRow() {
	r.what()
	j := &r.out.Job
	j.Command = r.job.Nodes[0].Manifest.Command
	if len(j.Command) == 0 && len(r.ranked) > 0 {
		j.Command = r.ranked[0].Declaration.Argv
	}
	if j.Command == nil {
		j.Command = []string{}
	}
	j.Name = r.options.Name
	if j.Name == "" {
		j.Name = scriptOf(j.Command)
	}
	numbers := map[int]int{}
	for _, k := range r.ranked {
		numbers[k.Number] += k.steps
		if !k.byFetch {
			j.StepIs = "optimizer step"
		}
	}
	j.Ranks = len(numbers)
	for _, n := range numbers {
		j.Steps = max(j.Steps, n)
	}
	if j.StepIs == "" {
		j.StepIs = "fetch"
	}
	j.WallSeconds = unit.None[float64]("nothing was recorded")
	if r.end > r.begin {
		j.WallSeconds = unit.Some(float64(r.end-r.begin) / 1e9)
	}
	j.Throwaway = r.tested() && r.out.EndedBy.Or("") == recording.EndedByDatawait
	fetches, steps := 0, 0
	for _, k := range r.ranked {
		if !k.unfed() {
			fetches += k.steady.fetches
			steps += k.steady.steps
		}
	}
	j.FetchesPerStep = quotient(float64(fetches), float64(steps), r.noWait())
	j.SamplesPerBatch = unit.None[float64]("no batch said how many samples it holds")
	for _, l := range r.out.Loaders {
		if l.Role != "training" {
			continue
		}
		if l.Samples.IsKnown() {
			j.SamplesPerBatch = l.Samples
			break
		}
		if n, ok := r.crews[uint16(l.ID)].note.Arguments.BatchSize.Get(); ok && n > 0 {
			j.SamplesPerBatch = unit.Some(float64(n))
			break
		}
	}
}

// scriptOf finds the name of the script or module in a command line.
func scriptOf(command []string) string {
	for i, arg := range command {
		if strings.HasSuffix(arg, ".py") {
			return path.Base(arg)
		}
		if arg == "-m" && i+1 < len(command) {
			return command[i+1]
		}
	}
	if len(command) > 0 {
		return path.Base(command[0])
	}
	return "unknown"
}

// step combines the ranks: sums over sums, and an interval from stretches of time in which all ranks are taken together, for the
// ranks of a job wait for one another and are no independent witnesses.
func (r *run) stepRow() {
	s := &r.out.Step
	var mean, share, exposed []*stat.Ratio
	var waits stat.Durations
	var handoff, opening, trained int64
	seen := len(r.ranked) > 0
	joined, fetches := 0, 0
	var time int64
	for _, k := range r.ranked {
		st := &k.steady
		if st.steps > 0 {
			mean = append(mean, st.mean)
			s.N = max(s.N, st.steps)
		}
		if k.unfed() {
			continue
		}
		opening += st.opening
		trained += k.trained()
		if st.steps == 0 {
			continue
		}
		share, exposed = append(share, st.share), append(exposed, st.exposed)
		waits.Join(&st.waits)
		handoff += st.handoff
		seen = seen && st.seen()
		joined += st.joined
		fetches += st.fetches
		time += st.time
	}
	grade, why := stat.GradeA, r.noWait()
	s.MeanSeconds = scaled(stat.Combine(mean...), 1e-9, s.N, grade, "hook clock", noSteady)
	s.DataWaitShare = portion(stat.Combine(share...), s.N, grade, "hook clock", why)
	if len(share) == 0 {
		s.DataWaitShare = r.totalShare()
	}
	s.ExposedWaitShare = unit.None[stat.Estimate](noDeviceClock)
	if seen && len(exposed) > 0 {
		source := "device events"
		for _, k := range r.ranked {
			if k.Emulated {
				source = "emulated device"
			}
		}
		s.ExposedWaitShare = portion(stat.Combine(exposed...), s.N, stat.GradeB, source, noSteady)
	}
	s.HandoffShare = unit.None[float64]("no fetch could be joined with its batch")
	if joined > 0 && 2*joined >= fetches {
		s.HandoffShare = quotient(float64(handoff)*float64(fetches)/float64(joined), float64(time), noSteady)
	}
	s.EpochStartShare = quotient(float64(opening), float64(trained), r.orNoFetch("no live training was recorded"))
	s.P50WaitSeconds, s.P99WaitSeconds = quantile(&waits, 0.5, why), quantile(&waits, 0.99, why)
	r.out.Job.StepsPerSecond = inverse(s.MeanSeconds)
}

// noWait is why no wait is known.
func (r *run) noWait() string { return r.orNoFetch(noSteady) }

// orNoFetch is the reason given, unless no fetch of any rank was seen for its steps.
func (r *run) orNoFetch(why string) string {
	if r.unfed() {
		return noFetch
	}
	return why
}

// unfed reports a job that steps, and of whose training no fetch was seen at all.
func (r *run) unfed() bool {
	for _, k := range r.ranked {
		if !k.unfed() {
			return false
		}
	}
	return len(r.ranked) > 0
}

// beside reports that a rank's batches come from another thread, beside a loader that it reads itself.
func (r *run) beside() bool {
	return slices.ContainsFunc(r.ranked, func(k *rank) bool { return k.beside })
}

// totalShare is the wait share from the totals that survive when records were overwritten.
func (r *run) totalShare() Est {
	var wait, all float64
	fetches := 0
	for _, k := range r.ranked {
		if k.unfed() {
			continue // its loaders feed something else
		}
		w, a, n := k.sums()
		wait, all, fetches = wait+w, all+a, fetches+n
	}
	if !(all > 0) {
		return unit.None[stat.Estimate](r.noWait())
	}
	return unit.Some(stat.Exact(wait/all).Estimate(fetches, stat.GradeC, "totals of the hook, epoch starts included"))
}

func quantile(d *stat.Durations, q float64, why string) Ratio {
	ns, ok := d.Quantile(q)
	if !ok {
		return unit.None[float64](why)
	}
	return unit.Some(float64(ns) / 1e9)
}

// inverse turns seconds per step into steps per second.
func inverse(e Est) Est {
	v, ok := e.Get()
	if !ok || !(v.Low > 0) {
		return unit.None[stat.Estimate](noSteady)
	}
	return unit.Some(stat.Estimate{Value: 1 / v.Value, Low: 1 / v.High, High: 1 / v.Low, N: v.N, Grade: v.Grade, Source: v.Source})
}

package verdict

import (
	"fmt"
	"slices"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/probe/unit"
)

// blind says why nothing can be judged, if nothing can: without the hook, a step, or a fetch, all other verdicts would be guesses.
func (s *subject) blind() (found []Verdict, yes bool) {
	seen, known := s.f.HookSeen.Get()
	nothing := s.f.Steps == 0 && s.f.Fetches == 0
	defer func() {
		if o := metricUntrusted(s); yes && o.found {
			o.verdict.ID = MetricUntrusted
			found = append(found, o.verdict)
		}
	}()
	switch {
	case known && !seen, nothing && len(s.f.KeptOut)+len(s.f.Refused) > 0:
		return append([]Verdict{s.hookNotLoaded()}, s.idle()...), true
	case nothing:
		return append(s.idle(), s.noSteps("no training step and no fetch of a loader was seen")), true
	case s.f.Steps == 0:
		return append(s.idle(), s.noSteps(fmt.Sprintf("%d fetches were seen, but none by a training loader", s.f.Fetches))), true
	case s.f.Unfed:
		return append([]Verdict{s.loaderNotSeen()}, s.idle()...), true
	}
	return nil, false
}

func (s *subject) noSteps(title string) Verdict {
	if found := likely(s.f.OtherLoaders); len(found) > 0 {
		title += fmt.Sprintf("; the job imports %s, whose fetches are not seen by themselves", names(found))
	}
	do := "if the job trains, " + WatchLine(s.f.OtherLoaders)
	if s.f.Failed != "" {
		title += "; the command ended " + s.f.Failed
		do = "see first what the command itself said before it ended; then, " + do
	}
	return Verdict{
		ID: NoStepsSeen, Title: title, Confidence: 0.95, Share: unit.None[float64]("no step was seen"), Do: do,
		Evidence:    evidence{}.value("steps", float64(s.f.Steps), "count", bySteps).value("fetches", float64(s.f.Fetches), "count", bySteps),
		FalsifiedBy: "a longer recording, or datawait.watch() around a loader that is not PyTorch's",
	}
}

// notSteady: steps were seen, but none outside warm-up and epoch starts.
func (s *subject) notSteady() Verdict {
	title := "no steady state was reached"
	if s.f.WhyNot != "" {
		title += ": " + s.f.WhyNot
	}
	return Verdict{
		ID: NoSteadyState, Title: title, Confidence: 0.9, Share: unit.None[float64]("no steady step was measured"),
		Evidence:    evidence{}.value("steps", float64(s.f.Steps), "count", bySteps).value("epochs", float64(s.p.Epoch.Epochs), "count", bySteps),
		FalsifiedBy: "a longer run, or longer epochs, in which steps settle",
	}
}

// enough of the allocated time must be known before a GPU is called idle: what was not seen is not idleness.
const enough = 0.5

// starting is how long, in hours, a GPU may stand ready for a rank that then trains on it: three minutes of imports and reading are a start.
const starting = 0.05

// idleAllocated: GPUs were assigned to a job that did not use them (F78, F79). One on which a rank trains and waits is not idle: its
// steps say so. Counters that contradict themselves are left out of what was seen, so they make no GPU idle.
func idleAllocated(s *subject) opinion {
	trains := slices.ContainsFunc(s.f.GPUs, func(g GPU) bool { return g.Ranks > 0 })
	var idle []GPU
	free, all := true, 0.0
	for _, g := range s.f.GPUs {
		all += g.Hours
		if g.free() || trains && g.Ranks == 0 && g.unused() {
			idle, free = append(idle, g), free && g.free()
		}
	}
	if len(idle) == 0 || all <= 0 {
		return opinion{}
	}
	why := "no rank uses " + phrase.Verb(len(idle), "it", "them")
	switch {
	case free && len(s.f.GPUs) == 1:
		why = fmt.Sprintf("no process held it for %s of the time", phrase.Percent(1-idle[0].Held.Or(0)))
	case free:
		why = "no process held " + phrase.Verb(len(idle), "it", "them") + " for half of the time or more"
	}
	return s.idleOf(idle, why, all)
}

// idleOf is the finding that these GPUs, of so many hours in all, are idle.
func (s *subject) idleOf(idle []GPU, why string, all float64) opinion {
	which, hours, assigned := "the GPU", 0.0, true
	for _, g := range idle {
		hours, assigned = hours+g.Hours, assigned && g.Assigned
	}
	if n := len(s.f.GPUs); n > 1 {
		which = fmt.Sprintf("%d of %d GPUs", len(idle), n)
	}
	v := s.idleVerdict(which + phrase.Verb(len(idle), " was assigned and ", " were assigned and ") + why)
	if !assigned {
		v.Title = which + phrase.Verb(len(idle), " was", " were") + " there for the job (nothing tells whom " + phrase.Verb(len(idle), "it is", "they are") + " assigned to) and " + why
		v.Confidence = 0.6
	}
	v.Evidence = append(v.Evidence, Evidence{"idle_hours", hours, "count", byGPU})
	return find(v, hours/all)
}

// free reports that no process held it for half of the time.
func (g GPU) free() bool {
	held, known := g.Held.Get()
	return known && g.Watched >= enough && held < 0.5 && (g.Ranks == 0 || (1-held)*g.Hours >= starting)
}

// unused reports that kernels were hardly ever there.
func (g GPU) unused() bool {
	resident, known := g.Resident.Get()
	return known && g.Covered >= enough && resident < Notable
}

// idle is the same for a job of which no step was seen: held or not, nothing ran on the device.
func (s *subject) idle() []Verdict {
	if o := idleAllocated(s); o.found {
		o.verdict.ID = IdleAllocated
		return []Verdict{o.verdict}
	}
	if v, ok := s.orphaned(); ok {
		return []Verdict{v}
	}
	var idle []GPU
	all := 0.0
	for _, g := range s.f.GPUs {
		all += g.Hours
		if g.unused() {
			idle = append(idle, g)
		}
	}
	if len(idle) == 0 || all <= 0 {
		return nil
	}
	why := "had nothing to run for most of the time"
	if resident, ok := idle[0].Resident.Get(); ok && len(idle) == 1 {
		why = fmt.Sprintf("had nothing to run for %s of the time", phrase.Percent(1-resident))
	}
	v := s.idleOf(idle, why, all).verdict
	v.ID = IdleAllocated
	return []Verdict{v}
}

// orphaned: memory or kernels on a GPU of which no process is listed, in a job without a step: a context that outlived its process, or
// a process that cannot be seen from here (F78; fixture M6).
func (s *subject) orphaned() (Verdict, bool) {
	for _, g := range s.f.GPUs {
		if !g.Hidden || g.Ranks > 0 {
			continue
		}
		v := s.idleVerdict(fmt.Sprintf("%s is in use and no process is listed that holds it: a context was left behind, or its process cannot be seen from here", g.Name))
		v.ID, v.Confidence, v.Share = OrphanContext, 0.6, unit.None[float64]("who uses it is not known")
		v.Evidence = evidence(v.Evidence).num("memory_used_bytes", g.Memory, "bytes", byDriver)
		v.FalsifiedBy = "a process with a context on it in `nvidia-smi` on the machine itself, outside any container"
		return v, true
	}
	return Verdict{}, false
}

func (s *subject) idleVerdict(title string) Verdict {
	return Verdict{
		Title: title, Confidence: 0.9,
		Evidence: evidence{}.num("held_ratio", s.f.HeldRatio, "ratio", byGPU).num("resident_ratio", s.f.ResidentRatio, "ratio", byGPU).
			num("allocated_hours", s.f.AllocatedHours, "count", byGPU),
		FalsifiedBy: "steps seen on this GPU in the same time",
	}
}

// metricUntrusted: counters that contradict themselves are not read as idleness (F74–F77).
func metricUntrusted(s *subject) opinion {
	u, ok := s.f.Untrusted.Get()
	if !ok || !(u >= Notable) {
		return opinion{}
	}
	o := find(Verdict{
		Title:       fmt.Sprintf("%s of the GPU counter windows contradict themselves, so SM activity is not shown for them", phrase.Percent(u)),
		Confidence:  0.9,
		Evidence:    evidence{}.value("untrusted", u, "ratio", byGPU),
		FalsifiedBy: "a second source (NVML beside DCGM) that agrees with the counters",
	}, u)
	o.weight = 0 // it qualifies the rest and is not a cause
	return o
}

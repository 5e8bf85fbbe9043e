package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/probe/unit"
)

// blind says why nothing can be judged, if nothing can: without the hook, a step, or a fetch, all other verdicts would be guesses.
func (s *subject) blind() ([]Verdict, bool) {
	seen, known := s.f.HookSeen.Get()
	nothing := s.f.Steps == 0 && s.f.Fetches == 0
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
	return Verdict{
		ID: NoStepsSeen, Title: title, Confidence: 0.95, Share: unit.None[float64]("no step was seen"), Do: "if the job trains, " + WatchLine(s.f.OtherLoaders),
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

// idleAllocated: the GPU was assigned to a job that did not use it (F78, F79). A job that trains and waits is not idle: its steps say so.
func idleAllocated(s *subject) opinion {
	held, ok := s.f.HeldRatio.Get()
	if !ok || !(held < 0.5) {
		return opinion{}
	}
	return find(s.idleVerdict(fmt.Sprintf("the GPU was assigned but no process held it for %s of the time", phrase.Percent(1-held))), 1-held)
}

// idle is the same for a job of which no step was seen: held or not, nothing ran on the device.
func (s *subject) idle() []Verdict {
	if o := idleAllocated(s); o.found {
		o.verdict.ID = IdleAllocated
		return []Verdict{o.verdict}
	}
	resident, ok := s.f.ResidentRatio.Get()
	if !ok || !(resident < Notable) {
		return nil
	}
	v := s.idleVerdict(fmt.Sprintf("the GPU was held and had nothing to run for %s of the time", phrase.Percent(1-resident)))
	v.ID, v.Share = IdleAllocated, unit.Some(1-resident)
	return []Verdict{v}
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

package analysis

import (
	"fmt"
	"slices"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// diagnosis says what the numbers mean and what to do: the model of the rank that decides, what its signatures say, and what each
// fix would change.
func (r *run) diagnosis() {
	var p loader.Parameters
	if k := r.decider(); k != nil {
		p = r.parameters(k)
	}
	model := loader.New(p)
	found := verdict.Judge(r.facts(), model)
	ranking := fixes.Rank(model)
	out := r.out
	out.Model = model.Summary()
	out.Verdicts, out.Dropped = found.Verdicts, found.Dropped
	out.Fixes, out.NoHelp, out.Unpriced, out.Plan = ranking.Fixes, ranking.NoHelp, ranking.Unpriced, ranking.Plan
	out.MoreGPUs = ranking.MoreGPUs
	r.release()
	r.measure()
	if out.Model.Reason == "" {
		out.Model.Reason = ranking.Reason
	}
}

// release names the change that follows from GPUs that do nothing. It makes no step faster, so it has no place in the ranking.
func (r *run) release() {
	i := slices.IndexFunc(r.out.Verdicts, func(v verdict.Verdict) bool { return v.ID == verdict.IdleAllocated })
	if i < 0 {
		return
	}
	for _, e := range r.out.Verdicts[i].Evidence {
		if e.Metric == "idle_hours" {
			r.out.Unpriced = append(r.out.Unpriced, fixes.Unpriced{ID: fixes.ReleaseGPU, Title: "ask for fewer GPUs",
				How:    "ask the scheduler for as many GPUs as ranks use, and end jobs and notebooks that hold one without using it",
				Reason: fmt.Sprintf("it makes no step faster; it would have left %.3g GPU-hours of this run to others", e.Value)})
		}
	}
}

// failure says how a command failed by itself; "" if it did not, was ended by datawait, or its end was not seen.
func failure(m recording.Manifest) string {
	if by, _ := m.EndedBy.Get(); by == recording.EndedByDatawait {
		return ""
	}
	if signal, ok := m.Signal.Get(); ok && signal != "" {
		return "by " + signal
	}
	if code, ok := m.ExitCode.Get(); ok && code != 0 {
		return fmt.Sprintf("with status %d", code)
	}
	return ""
}

// minSteady is the fewest steady steps that carry a judgement.
const minSteady = 10

// facts says whether there is anything to judge at all.
func (r *run) facts() verdict.Facts {
	f := verdict.Facts{Steady: r.out.Step.N >= minSteady, HookDisabled: r.out.Quality.Hook.Disabled, HookSeen: unit.None[bool]("no agent watched"),
		TestConclusion: unit.None[string]("no cached-data test ran")}
	for _, k := range r.ranked {
		f.Steps += k.steps
		f.Fetches += k.Fetched
	}
	if !f.Steady {
		f.WhyNot = r.whyNotSteady()
	}
	for _, n := range r.job.Nodes {
		if how := failure(n.Manifest); how != "" {
			f.Failed = how
		}
		if n.Manifest.Format != "" {
			f.HookSeen = unit.Some(f.HookSeen.Or(false) || n.Manifest.Hook.Attached)
		}
		for i := range n.Notes {
			for _, j := range n.Notes[i].Jobs {
				f.PythonChildren += int(min(max(j.PythonChildren, 0), 1<<20))
				f.Refused = append(f.Refused, j.Refused...)
				for _, k := range j.KeptOut {
					f.KeptOut = append(f.KeptOut, verdict.KeptOut{Command: k.Command, Why: k.Why})
				}
			}
		}
	}
	if len(r.job.Ranks)+len(r.job.Others) > 0 {
		f.HookSeen = unit.Some(true)
	}
	f.Unfed, f.Beside, f.OtherLoaders = r.unfed(), r.beside(), r.otherLoaders()
	r.gpuFacts(&f)
	if r.test != nil {
		f.TestConclusion = unit.Some(r.test.Conclusion)
	}
	return f
}

// otherLoaders returns the modules of loaders that the job imported and the hook does not see, each once.
func (r *run) otherLoaders() (modules []string) {
	add := func(module string) {
		if !slices.Contains(modules, module) {
			modules = append(modules, module)
		}
	}
	for _, k := range append(append([]*load.Rank{}, r.job.Ranks...), r.job.Others...) {
		for _, n := range k.Notes.OtherLoaders {
			add(n.Module)
		}
	}
	for _, n := range r.job.Nodes {
		for i := range n.Notes {
			for _, j := range n.Notes[i].Jobs {
				for _, module := range j.OtherLoaders {
					add(module)
				}
			}
		}
	}
	return modules
}

func (r *run) whyNotSteady() string {
	steps := 0
	for _, k := range r.ranked {
		steps = max(steps, k.steps)
	}
	switch {
	case len(r.ranked) == 0:
		return "no training process was seen"
	case steps == 0:
		return "no step was recorded"
	case steps < minSteady:
		return "the run made too few steps"
	}
	return "nearly every step lies in an epoch start, in warm-up or beside validation: the epochs are too short"
}

func (r *run) gpuFacts(f *verdict.Facts) {
	var held, resident, untrusted mean
	hours := 0.0
	for _, d := range r.devices {
		c := d.ladder
		held.add(float64(c.held), float64(c.heldKnown))
		resident.add(c.resident, c.residentKnown)
		untrusted.add(float64(c.untrusted), float64(c.windows))
		hours += float64(d.books.Allocated) / 3600e9
		f.GPUs = append(f.GPUs, verdict.GPU{Name: d.called(), Ranks: len(d.ranks), Held: d.row.HeldRatio, Resident: d.row.ResidentRatio,
			Covered: quotient(c.residentKnown, float64(d.books.Allocated), noWindow).Or(0), Watched: quotient(float64(c.heldKnown), float64(d.books.Allocated), noWindow).Or(0),
			Hours: float64(d.books.Allocated) / 3600e9, Memory: d.row.State.MemoryUsed, Hidden: d.holding.hidden > 0,
			Assigned: len(d.ranks) > 0 || len(d.assigned()) > 0 || emulated(d)})
	}
	f.HeldRatio, f.ResidentRatio, f.Untrusted = held.value(noWindow), resident.value(noWindow), untrusted.value(noWindow)
	f.AllocatedHours = unit.None[float64]("no GPU was watched")
	if len(r.devices) > 0 {
		f.AllocatedHours = unit.Some(hours)
	}
}

package view

import (
	"github.com/datawait/datawait/analysis"
)

// gaps lists what was not measured, in words.
func gaps(r *analysis.Result) []Gap {
	var out []Gap
	add := func(what string, q Quantity) {
		if !q.Known {
			out = append(out, Gap{what, upper(sentence(q.Why))})
		}
	}
	add("Step time", estimate(r.Step.MeanSeconds, percentStyle))
	add("Data wait", estimate(r.Step.DataWaitShare, percentStyle))
	add("Exposed wait", estimate(r.Step.ExposedWaitShare, percentStyle))
	sm, _ := jobSM(r)
	add("SM activity", estimate(sm, percentStyle))
	if r.Baseline == nil {
		out = append(out, Gap{"Cached-data test", "It did not run."})
	} else {
		for _, s := range r.Baseline.Skipped {
			out = append(out, Gap{"Leg on " + legName(s.Leg), upper(sentence(s.Reason))})
		}
	}
	return out
}

func warnings(r *analysis.Result) []string {
	var out []string
	for _, w := range r.Quality.Warnings {
		out = append(out, upper(sentence(w)))
	}
	return out
}

// method says how the numbers came about.
func method(r *analysis.Result) []Fact {
	return []Fact{
		{"Shares", "Sums over sums in steady state: the start of each epoch and the first batches of each loader are kept apart. No median is used for a share."},
		{"SM activity", orWords(upper(sentence(r.Quality.GPU.Why)), "No reason for the choice of the source was recorded.")},
		{"Cached-data test", "Blocks of steps on live data and on batches already in memory alternate, so that drift hits both alike. Intervals come from the blocks."},
		{"Predictions", modelFact(r)},
		{"What bounds a step", bounds(r)},
	}
}

func modelFact(r *analysis.Result) string {
	if !r.Model.Trusted {
		why, _ := withheld(r)
		return "Withheld. " + why
	}
	s := "Each fix changes the parameters of a model of this loader"
	if name := cleanName(r.Model.Name); name != "" {
		s += " (" + name + ")"
	}
	if q := share(r.Model.ReplayError); q.Known {
		s += ", which reproduces the recorded run within " + q.Text
	}
	return s + "."
}

// quality is how far the observation itself can be relied on, and what it cost.
func quality(r *analysis.Result) []Fact {
	q := r.Quality
	hook := count(int64(min(q.Hook.Records, 1<<62))) + " records, " + count(int64(min(q.Hook.Dropped, 1<<62))) + " dropped; added " + scaled(q.Hook.AddedSeconds, timeScales).Words() + " per fetch"
	if q.Hook.Disabled {
		hook += "; it switched itself off after an error"
	}
	out := []Fact{
		{"Run", ended(r)},
		{"Hook", upper(hook) + "."},
		{"Counters", "Windows of " + scaled(q.GPU.WindowSeconds, timeScales).Words() + "; cover " + share(q.GPU.Coverage).Words() + " of the run."},
		{"Clocks", "Agree within " + scaled(q.Clock.ResidualSeconds, timeScales).Words() + "."},
		{"Cost of the agent", cores(q.OwnCost.AgentCores).Words() + ", " + scaled(q.OwnCost.AgentRSS, byteScales).Words() + " of memory."},
		{"Damage", damage(q.Damage)},
	}
	for _, e := range q.Hook.Errors {
		out = append(out, Fact{"Error in the hook", sentence(e)})
	}
	return out
}

// ended says how the run came to its end, and by which version it was observed.
func ended(r *analysis.Result) string {
	s := "How it ended is unknown"
	switch by, ok := r.EndedBy.Get(); {
	case ok && by == "command":
		s = "It ended by itself"
	case ok && by == "datawait":
		s = "datawait ended it after the test"
	case ok && by == "signal":
		s = "A signal ended it"
	case ok:
		s = "Ended by " + cleanName(by)
	}
	if code, ok := r.ExitCode.Get(); ok {
		s += ", exit code " + count(code)
	}
	return s + ". Observed by datawait " + orWords(cleanName(r.Version), "of an unknown version") + "."
}

func damage(d analysis.DamageReport) string {
	n := uint64(d.TornTails) + uint64(d.BadFrames) + d.UnknownKinds + d.Torn + d.Lost
	if n == 0 && !d.Unfinished {
		return "None: everything recorded could be read."
	}
	s := plural64(uint64(d.TornTails), "torn tail") + ", " + plural64(uint64(d.BadFrames), "bad frame") + ", " + plural64(d.UnknownKinds, "record") + " of unknown kind, " +
		plural64(d.Torn, "torn record") + ", " + plural64(d.Lost, "lost record") + "."
	if d.Unfinished {
		s += " The recording was not finished."
	}
	return s
}

package view

import (
	"strings"

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
	if r.Job.Ranks > 1 && len(r.GPUs) > 0 && !r.GPUs[0].CollectiveNS.IsKnown() {
		out = append(out, Gap{"Collective time", upper(sentence(orWords(r.GPUs[0].CollectiveNS.Why(), "not measured")))})
	}
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

// damage lists the counts that are not 0.
func damage(d analysis.DamageReport) string {
	var parts []string
	for _, c := range []struct {
		n    uint64
		what string
		more string
	}{
		{d.BadFiles, "unreadable file", ""}, {uint64(d.TornTails), "torn tail", ""}, {uint64(d.BadFrames), "bad frame", ""},
		{d.Undeclared, "record", " of undeclared processes"}, {d.LostNotes, "lost note", ""}, {d.UnknownKinds, "record", " of unknown kind"},
		{d.Torn, "torn record", ""}, {d.Lost, "lost record", ""}, {d.Contradicted, "record", " left out because of contradictions"},
	} {
		if c.n > 0 {
			parts = append(parts, plural64(c.n, c.what)+c.more)
		}
	}
	if len(parts) == 0 && !d.Unfinished {
		return "None: everything recorded could be read."
	}
	s := ""
	if len(parts) > 0 {
		s = upper(strings.Join(parts, ", ")) + "."
	}
	if d.Unfinished {
		s = strings.TrimSpace(s + " The recording was not finished.")
	}
	return s
}

// unread says what of the recording could not be read, "" where nothing of weight is missing. A torn tail is the normal end
// of a recording that was cut short, which is said already.
func unread(d analysis.DamageReport) string {
	if d.Unfinished {
		d.TornTails = 0
	}
	d = analysis.DamageReport{BadFiles: d.BadFiles, TornTails: d.TornTails, BadFrames: d.BadFrames, Undeclared: d.Undeclared}
	if d == (analysis.DamageReport{}) {
		return ""
	}
	return damage(d) + " What stood there is missing from every number."
}

package view

import (
	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// sure says in one line how far the numbers can be trusted and what it cost to get them.
func sure(r *analysis.Result) []string {
	out := []string{replayed(r), hookCost(r), coverage(r)}
	if text := guessed(r); text != "" {
		out = append(out, text)
	}
	if n := r.Quality.Hook.Dropped; n > 0 {
		out = append(out, plural64(n, "record")+" dropped")
	}
	if s := recordSentence(r.TrackRecord); s != "" && len(r.Fixes) > 0 { // without a prediction nobody asks how others came out
		out = append(out, s)
	}
	return out
}

// guessed says whose GPU is not known for certain.
func guessed(r *analysis.Result) string {
	n := 0
	for _, k := range r.Ranks {
		if k.GPUGuessed {
			n++
		}
	}
	switch {
	case n == 0:
		return ""
	case len(r.Ranks) == 1:
		return "which GPU the job uses is a guess"
	}
	return "which GPU a rank uses is a guess for " + count(n) + " of " + count(len(r.Ranks))
}

func replayed(r *analysis.Result) string {
	switch q := share(r.Model.ReplayError); {
	case q.Known && q.Value == 0: // a build that was held up by just what its steps allow; nothing is that exact
		return "the model agrees with this run"
	case q.Known:
		return "the model is off by " + q.Text
	}
	return "no model fits this run"
}

// hookCost is what the hook added to a step, as a share of it; as a time where the step is unknown.
func hookCost(r *analysis.Result) string {
	added, ok := r.Quality.Hook.AddedSeconds.Get()
	if !ok {
		return "hook cost unknown"
	}
	step, known1 := r.Step.MeanSeconds.Get()
	fetches, known2 := r.Job.FetchesPerStep.Get()
	if q := share(measured(added * fetches / step.Value)); known1 && known2 && q.Known {
		return "hook cost " + q.Text + " of a step"
	}
	if q := scaled(measured(added), timeScales); q.Known {
		return "hook cost " + q.Text + " a fetch"
	}
	return "hook cost unknown"
}

func coverage(r *analysis.Result) string {
	q := share(r.Quality.GPU.Coverage)
	sm, _ := jobSM(r)
	e, ok := sm.Get()
	switch {
	case !ok && len(r.GPUs) > 0 && sm.State() == unit.Failed:
		return "GPU counters not trusted"
	case !ok:
		return "no GPU counters"
	case !q.Known:
		return "coverage of the counters unknown"
	}
	s := "counters cover " + q.Text
	if e.Grade != "" {
		s += ", grade " + cleanName(string(e.Grade))
	}
	if r.Emulated {
		s += " (emulated)"
	}
	return s
}

func plural64(n uint64, noun string) string { return plural(int(min(n, 1<<53)), noun) }

package analysis

import (
	"encoding/json"
	"math"

	"github.com/datawait/datawait/analysis/baseline"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Trial is another loader that the run tried in place of its own, as `diagnose --try` does.
type Trial struct {
	Workers     int  `json:"num_workers"`
	Prefetch    int  `json:"prefetch_factor"`
	Memoised    bool `json:"memoised"` // samples were built once and then came from memory: what preparing them once leaves, at best
	StepSeconds Est  `json:"step_seconds"`
	Saved       Est  `json:"step_time_saved_share"` // against the live blocks before
	Blocks      int  `json:"blocks"`
}

// Trials are the loaders worth trying, by what was ranked: the first change of workers, the first of prefetching, and the samples kept
// in memory where preparing them once is ranked.
func Trials(r *Result) (trials []recording.Trial) { return trialsOf(r, r.Fixes) }

// worthUnasked is the saving from which a change of loader arguments is tried in a run of somebody who did not ask for it.
const worthUnasked = 0.05

// BestTrials are those that are tried unasked: loader arguments that are ranked first or second and save more than 5 %. Samples kept in memory
// take memory that nobody offered.
func BestTrials(r *Result) []recording.Trial {
	var best []fixes.Fix
	for _, f := range r.Fixes[:min(2, len(r.Fixes))] {
		saved, ok := f.Predicted.StepSavedShare.Get()
		if ok && saved.Value > worthUnasked && f.ID != fixes.PreprocessOnce {
			best = append(best, f)
		}
	}
	return trialsOf(r, best)
}

func trialsOf(r *Result, ranked []fixes.Fix) (trials []recording.Trial) {
	workers, prefetch := r.loaderArguments()
	add := func(t recording.Trial) {
		for _, other := range trials {
			if other == t {
				return
			}
		}
		trials = append(trials, t)
	}
	for _, f := range ranked {
		switch args := f.Arguments; {
		case f.NoRoom: // its queues would not fit into /dev/shm, and workers would be killed
		case args.Workers.IsKnown() || args.Prefetch.IsKnown():
			add(recording.Trial{Workers: args.Workers.Or(workers), Prefetch: args.Prefetch.Or(prefetch)})
		case f.ID == fixes.PreprocessOnce:
			add(recording.Trial{Workers: workers, Prefetch: prefetch, Memoised: true})
		}
	}
	return trials
}

// loaderArguments are those of the loader that training waits for most.
func (r *Result) loaderArguments() (workers, prefetch int) {
	wait := -1.0
	prefetch = loader.DefaultPrefetch
	for _, l := range r.Loaders {
		if l.Role == "training" && l.WaitSeconds > wait {
			wait, workers = l.WaitSeconds, l.WorkersSeen
			prefetch = loader.DefaultPrefetch
			if n := 0; json.Unmarshal(l.Arguments["prefetch_factor"], &n) == nil && n > 0 {
				prefetch = n
			}
		}
	}
	return workers, prefetch
}

// tried compares each trial with the live blocks before its own.
func (r *run) tried(blocks []baseline.Block) {
	what := map[int]recording.Trial{}
	for _, k := range r.ranked {
		for _, n := range k.Notes.Trials {
			what[int(n.Block)] = n.Trial()
		}
	}
	var order []recording.Trial
	of := map[recording.Trial][]baseline.Block{}
	for _, b := range blocks {
		t, ok := what[b.Number]
		if b.Leg != recording.LegTrial || !ok {
			continue
		}
		if of[t] == nil {
			order = append(order, t)
		}
		of[t] = append(of[t], b)
	}
	for _, t := range order {
		r.out.Trials = append(r.out.Trials, r.compared(t, blocks, of[t]))
	}
}

func (r *run) compared(t recording.Trial, blocks, own []baseline.Block) Trial {
	mine := map[int]bool{}
	for _, b := range own {
		mine[b.Number] = true
	}
	steps, saved := baseline.Against(blocks, func(b baseline.Block) bool { return mine[b.Number] })
	const few = "fewer than two blocks of it count"
	out := Trial{Workers: t.Workers, Prefetch: t.Prefetch, Memoised: t.Memoised, Blocks: len(saved),
		StepSeconds: unit.None[stat.Estimate](few), Saved: unit.None[stat.Estimate](few)}
	if i, ok := stat.Mean(saved); ok {
		out.Saved = unit.Some(i.Clamp(math.Inf(-1), 1).Estimate(len(saved), r.test.Grade, "tried in the same run"))
	}
	if i, ok := stat.Mean(steps); ok {
		out.StepSeconds = unit.Some(i.Clamp(0, math.Inf(1)).Estimate(len(steps), r.test.Grade, "tried in the same run"))
	}
	return out
}

// measure puts what was tried beside what was predicted.
func (r *run) measure() {
	workers, prefetch := r.out.loaderArguments()
	for i := range r.out.Fixes {
		f := &r.out.Fixes[i]
		for _, t := range r.out.Trials {
			args := f.Arguments
			changes := args.Workers.IsKnown() || args.Prefetch.IsKnown()
			same := !t.Memoised && changes && t.Workers == args.Workers.Or(workers) && t.Prefetch == args.Prefetch.Or(prefetch)
			if same || t.Memoised && f.ID == fixes.PreprocessOnce {
				f.Measured = t.Saved
			}
		}
	}
}

package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
)

// smallWait is the share of a step below which a wait is called small: the loaders of healthy runs show 3–9 %.
const smallWait = 0.10

// leads are the first words of the headline for each finding that is not about data in general.
var leads = map[string]string{
	"epoch-start":      "Waiting at every epoch start",
	"duplicate-data":   "Training on the same samples more than once",
	"main-process":     "Waiting for the training process",
	"copy":             "Waiting for copies to the GPU",
	"sync":             "Waiting for synchronisation",
	"launch-bound":     "Launch-bound: too little work per launch",
	"compute-bound":    "Limited by computing, not by data",
	"periodic-stall":   "Stalling at regular intervals",
	"rank-straggler":   "Waiting for the slowest rank",
	"memory-growth":    "Memory of the workers grows",
	"shm":              "Shared memory is short",
	"idle-allocated":   "Allocated, not used",
	"orphan-context":   "In use by nobody who is listed",
	"clock-throttle":   "The GPU clock is held down",
	"pcie-link":        "The PCIe link runs below its speed",
	"metric-untrusted": "The GPU counters contradict themselves",
	"no-steps-seen":    "No training step was seen",
	"hook-not-loaded":  "The training script was not observed",
	"loader-not-seen":  "The training's loader was not seen",
	"no-steady-state":  "Too short for a steady state",
	"healthy":          "The input pipeline keeps up",
}

// dataFindings are the verdicts whose headline is the data wait itself.
var dataFindings = map[string]bool{
	"too-few-workers": true, "cpu-capped": true, "thread-oversubscription": true, "cpu-transform": true, "storage-latency": true,
	"data-wait": true, "storage-bandwidth": true, "serial-read": true, "read-amplification": true, "cold-cache": true, "cache-thrash": true,
	"starved-workers": true, "slow-tail": true, "hand-off": true,
}

// headline is the verdict in a few words and its size in a sentence or two.
func headline(r *analysis.Result) Headline {
	if len(r.Verdicts) == 0 {
		return sized("No finding", r)
	}
	top := r.Verdicts[0]
	if blind(top.ID) {
		text := upper(sentence(top.Title))
		return Headline{lead(r, top.ID), text, text, []Piece{{text, false}}}
	}
	return sized(lead(r, top.ID), r)
}

// aside stands before and after an interval while a headline is put together. Clean lets no such character through.
const aside = "\ue000"

func sized(lead string, r *analysis.Result) Headline {
	marked := sizes(r, withDoubt)
	h := Headline{Lead: lead, Text: strings.ReplaceAll(marked, aside, ""), Plain: sizes(r, bare)}
	for i, s := range strings.Split(marked, aside) {
		if s != "" {
			h.Pieces = append(h.Pieces, Piece{s, i%2 == 1})
		}
	}
	return h
}

// blind reports that a verdict is about the measurement, so that sizes would say nothing.
func blind(id string) bool {
	return id == "no-steps-seen" || id == "hook-not-loaded" || id == "loader-not-seen"
}

func lead(r *analysis.Result, id string) string {
	if s, ok := leads[id]; ok {
		return s
	}
	if !dataFindings[id] {
		return upper(cleanName(id))
	}
	if w, ok := waitShare(r).Get(); ok && w.Value < smallWait {
		return "A small wait for data"
	}
	return "Waiting for data"
}

// waitShare is the share of a step that is lost to data: the exposed part where it is known.
func waitShare(r *analysis.Result) analysis.Est {
	if r.Step.ExposedWaitShare.IsKnown() {
		return r.Step.ExposedWaitShare
	}
	return r.Step.DataWaitShare
}

// sizes says in a sentence or two how much of a step is lost to data and how much the GPUs work. What the GPUs do is left
// out where it is not known: a banner says so.
// show writes a number: with its doubt in the text, without in a title.
func sizes(r *analysis.Result, show func(Quantity) string) string {
	wait, sm := estimate(r.Step.ExposedWaitShare, percentStyle), smWords(r)
	switch {
	case wait.Known && sm.Known:
		return gpus(r, "The GPU waits ", "The GPUs wait ") + show(wait) + " of every step for the next batch and " + gpus(r, "works ", "work ") + show(sm) +
			" of " + watched(r) + "."
	case wait.Known:
		return gpus(r, "The GPU waits ", "The GPUs wait ") + show(wait) + " of every step for the next batch."
	case sm.Known:
		return hostWait(r, show) + " " + gpus(r, "The GPU works ", "The GPUs work ") + show(sm) + " of " + watched(r) + "."
	}
	return hostWait(r, show)
}

// watched is the time of which SM activity is a share: that of the allocation, or the part of it in which it was measured, where that is
// too little to stand for the rest.
func watched(r *analysis.Result) string {
	all := "the time " + gpus(r, "it is", "they are") + " allocated"
	for _, x := range r.Ladder {
		if q := ratio(x.Coverage, wholePercentStyle); x.Name == "sm_active" && q.Known && q.Value < 0.5 {
			return "the " + q.Text + " of " + all + " in which that was measured"
		}
	}
	return all
}

// hostWait is the wait of the training process where it is not known what the GPU did meanwhile.
func hostWait(r *analysis.Result, show func(Quantity) string) string {
	if q := estimate(r.Step.DataWaitShare, percentStyle); q.Known {
		return "The training process waits " + show(q) + " of every step for the next batch; whether the GPU stood idle meanwhile is unknown."
	}
	return "How long a step waits for data is unknown: " + estimate(r.Step.DataWaitShare, percentStyle).Why + "."
}

// smWords is the SM activity of all GPUs, and says so where it is not known for each.
func smWords(r *analysis.Result) Quantity {
	sm, covered := jobSM(r)
	q := estimate(sm, percentStyle)
	if q.Known && covered < len(r.GPUs) {
		q.Text += " (known for " + count(covered) + " of " + count(len(r.GPUs)) + ")"
	}
	return q
}

// gpus chooses between the singular and the plural.
func gpus(r *analysis.Result, one, many string) string {
	if len(r.GPUs) == 1 {
		return one
	}
	return many
}

func bare(q Quantity) string { return q.Text }

func title(h Headline) string { return h.Lead + ": " + firstSentence(h.Plain) }

// firstSentence cuts at the first full stop that ends a sentence, and drops the stop.
func firstSentence(s string) string {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '.' && s[i+1] == ' ' {
			return s[:i]
		}
	}
	return clause(s)
}

// proof gives the sentences that prove the headline: what the cached-data test showed and what follows from it.
func proof(r *analysis.Result) []string {
	b := r.Baseline
	if toDo := toBeSeen(r); toDo != "" {
		return []string{toDo}
	}
	if b == nil && r.Job.Steps == 0 {
		return []string{"Without a step there is no data wait, no test and no fix to report."}
	}
	if b == nil {
		return []string{"No cached-data test ran, so what the input pipeline costs is inferred, not tried; datawait diagnose runs it."}
	}
	cached, ok := cachedLeg(b)
	if !ok {
		return []string{"The cached-data test has no result: " + orWords(clause(b.Why), "no block of it counts") + "."}
	}
	return []string{comparison(r, b.Legs["live"], cached), conclusion(b)}
}

// toBeSeen says what makes a job visible of which nothing could be judged, "" where that is not the finding or is not known.
func toBeSeen(r *analysis.Result) string {
	for _, v := range r.Verdicts {
		if blind(v.ID) && v.Do != "" {
			return "What to do: " + sentence(v.Do)
		}
	}
	return ""
}

// cachedLeg is the leg that stands for "batches already in memory".
func cachedLeg(b *analysis.Baseline) (analysis.Leg, bool) {
	for _, id := range []string{"host-cached", "host-cached-busy", "device-cached"} {
		if leg, ok := b.Legs[id]; ok && leg.StepSeconds.IsKnown() {
			return leg, true
		}
	}
	return analysis.Leg{}, false
}

func comparison(r *analysis.Result, live, cached analysis.Leg) string {
	st, _ := stepStyle(r)
	from, to := estimate(live.StepSeconds, st), estimate(cached.StepSeconds, st)
	s := "With batches already in memory "
	a, c := estimate(live.SMActiveRatio, percentStyle), estimate(cached.SMActiveRatio, percentStyle)
	switch {
	case a.Known && c.Known && a.Text == c.Text:
		s += "SM activity stays at " + a.Text + " and "
	case a.Known && c.Known:
		s += "SM activity goes from " + a.Text + " to " + c.Text + " and "
	}
	s += "a step takes " + to.Text
	if from.Known {
		s += " instead of " + from.Text
	}
	return s + " (" + speed(r.Baseline.Ceiling) + ")."
}

// speed says how many times faster, or that there is no meaningful difference.
func speed(ceiling analysis.Est) string {
	q := estimate(ceiling, timesStyle)
	switch {
	case !q.Known:
		return "how many times faster is unknown: " + q.Why
	case q.Range == "":
		return q.Text + " the speed"
	case q.Low <= 1 && q.High >= 1:
		return "no meaningful difference: " + q.Text + " the speed, " + doubt(q)
	case q.Value < 1:
		return q.Text + " the speed, " + doubt(q)
	}
	return q.Text + " faster, " + doubt(q)
}

// doubt is the interval and the grade of a number, as they stand beside it.
func doubt(q Quantity) string {
	var parts []string
	if q.Span != "" {
		parts = append(parts, "95"+nbsp+"% interval "+q.Span)
	}
	if q.Grade != "" {
		parts = append(parts, "grade"+nbsp+q.Grade)
	}
	return strings.Join(parts, ", ")
}

// withDoubt writes a number of the headline with its interval and grade behind it.
func withDoubt(q Quantity) string {
	d := doubt(q)
	if d == "" {
		return q.Text
	}
	return q.Text + " " + aside + "(" + d + ")" + aside
}

func conclusion(b *analysis.Baseline) string {
	switch b.Conclusion {
	case "input-pipeline":
		if c, ok := b.Ceiling.Get(); ok && c.Value < 1/(1-smallWait) {
			return "That is all a faster input pipeline can win."
		}
		return "The input pipeline is the cause; more GPUs would wait as well."
	case "not-input":
		return "The input pipeline is not what limits this job."
	case "inconclusive":
		return "The test is inconclusive: " + orWords(clause(b.Why), "its blocks differ too much among themselves") + "."
	}
	return sentence(b.Why)
}

func orWords(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// bullets are the three points that carry a ticket: what the test showed, what the cause is, where a step goes.
func bullets(v View) []string {
	out := []string{strings.Join(v.Proof, " ")}
	if len(v.Causes) > 0 {
		out = append(out, "Why: "+v.Causes[0].Short)
	}
	if len(v.Step.Parts) > 0 {
		out = append(out, stepLine(v.Step))
	} else {
		out = append(out, orWords(v.Ladder.Words, ladderLine(v.Ladder)))
	}
	return out
}

func stepLine(a Anatomy) string {
	var parts []string
	for _, p := range a.Parts {
		parts = append(parts, p.Name+" "+p.Text)
	}
	return a.Name + " takes " + a.Whole.WithRange() + ". Its parts in " + a.Unit + ": " + strings.Join(parts, ", ") + "."
}

func ladderLine(l Ladder) string {
	var parts []string
	for _, r := range l.Rungs {
		parts = append(parts, r.Name+" "+r.Share.Text)
	}
	return "Of the time the GPUs were allocated: " + strings.Join(parts, ", ") + "."
}

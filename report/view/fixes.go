package view

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
)

// Fixes are the changes worth making, best first.
type Fixes struct {
	Rows  []Fix
	Plan  string   // the best ones applied one after the other, as a sentence; "" for fewer than two
	Notes []string // what a mark or a column of the table means
	Unit  string   // of the step times, "ms"
	Grade string   // of the predictions: that of the weakest
	Words string   // why there are none; "" where there are
}

// Fix is one change and what it is expected to do.
type Fix struct {
	ID       string
	Position string
	Title    string
	From, To Quantity // step time before and after
	Saved    Quantity // share of the step
	Wait     Quantity // share of the wait that goes away, written as a change: "−91 %"
	Measured Quantity // share of the step saved where the run tried it; missing where it did not
	Tried    bool
	Epoch    Quantity // seconds saved per epoch
	GPUHours Quantity // saved per day of this job
	Effort   string
	How      string
	Recipe   string // a script that shows how, as a path in datawait's repository; "" where there is none
	Needs    string
	Assumes  []string
	Mark     string // " †" behind an interval that reaches no gain at all; "" elsewhere
}

// mark stands behind the interval of a fix that may win nothing, and in front of the note that says so.
const mark = "†"

func fixes(r *analysis.Result) Fixes {
	st, unitName := stepStyle(r)
	f := Fixes{Unit: unitName}
	if _, held := withheld(r); held {
		f.Words = "Predictions are withheld, so no fix is ranked."
		return f
	}
	list := slices.Clone(r.Fixes)
	slices.SortStableFunc(list, func(a, b analysis.Fix) int { return a.Position - b.Position })
	for _, x := range list {
		f.Rows = append(f.Rows, fix(r, x, st))
		f.Grade = max(f.Grade, f.Rows[len(f.Rows)-1].To.Grade)
	}
	if len(f.Rows) == 0 {
		f.Words = "No fix is worth making: none of those considered changes the step by a meaningful amount."
		if len(r.Unpriced) > 0 {
			f.Words = "None of those whose effect can be predicted changes the step by a meaningful amount."
		}
		return f
	}
	f.Plan = plan(r, list, st)
	f.Notes = append(tried(r, st), fixNotes(f.Rows)...)
	return f
}

// fixNotes explains what the table of fixes does not say by itself.
func fixNotes(rows []Fix) []string {
	var notes []string
	if slices.ContainsFunc(rows, func(f Fix) bool { return f.Mark != "" }) {
		notes = append(notes, mark+" may also win nothing: its interval reaches today's step")
	}
	if slices.ContainsFunc(rows, func(f Fix) bool { return f.Epoch.Known && f.Wait.Known }) {
		notes = append(notes, "wait counts a whole epoch, its start included")
	}
	return notes
}

// Recipes names the scripts that show how to make these fixes, each once, with the positions of its fixes:
// "examples/recipes/pack_shards.py (1), tuned_loader.py (2, 3)". "" where there is none.
func Recipes(rows []Fix) string {
	var names []string
	fixes := map[string][]string{}
	for _, f := range rows {
		if f.Recipe == "" {
			continue
		}
		if fixes[f.Recipe] == nil {
			names = append(names, f.Recipe)
		}
		fixes[f.Recipe] = append(fixes[f.Recipe], f.Position)
	}
	folder := ""
	for i, name := range names {
		short := name
		if dir := path.Dir(name); dir == folder {
			short = path.Base(name)
		} else {
			folder = dir
		}
		names[i] = short + " (" + strings.Join(fixes[name], ", ") + ")"
	}
	return strings.Join(names, ", ")
}

// gpuHourStyle writes GPU-hours of a day with one decimal, so that a column of them aligns.
var gpuHourStyle = style{func(float64) int { return 1 }, decimal, nbsp + "GPU-hours", 1}

func fix(r *analysis.Result, x analysis.Fix, st style) Fix {
	p := x.Predicted
	f := Fix{
		ID: cleanName(x.ID), Position: count(x.Position), Title: Clean(x.Title, 2*nameRunes), From: estimate(r.Step.MeanSeconds, st),
		To: estimate(p.StepSeconds, st), Saved: estimate(p.StepSavedShare, percentStyle), Wait: change(p.WaitRemovedShare),
		Measured: estimate(x.Measured, percentStyle), Tried: x.Measured.IsKnown(), Epoch: seconds(p.EpochSeconds),
		GPUHours: ratio(p.GPUHoursPerDay, gpuHourStyle), Effort: cleanProse(x.Effort), How: upper(sentence(x.How)), Recipe: cleanName(x.Recipe), Needs: sentence(x.Needs),
	}
	for _, a := range x.Assumes {
		f.Assumes = append(f.Assumes, sentence(a))
	}
	if s := f.Saved; s.Known && s.Range != "" && s.Low <= 0 && s.High >= 0 {
		f.Mark = nbsp + mark
	}
	return f
}

// change writes a share that goes away as a change, in whole percents: 0.91 removed reads "−91 %".
func change(m analysis.Ratio) Quantity {
	q := ratio(m, wholePercentStyle)
	switch {
	case !q.Known || q.Value == 0 || strings.HasPrefix(q.Text, "<"):
	case q.Value > 0:
		q.Text = minus + strings.TrimPrefix(q.Text, ">") // ">99 %" removed is "−99 %": never all of it
	default:
		q.Text = "+" + strings.TrimPrefix(q.Text, minus)
	}
	return q
}

// seconds writes a length of time that may be missing.
func seconds(m analysis.Ratio) Quantity {
	q := scaled(m, timeScales)
	if q.Known {
		q.Text = duration(q.Value)
	}
	return q
}

// plan says what the best fixes do one after the other: each is priced in what those before it leave.
func plan(r *analysis.Result, list []analysis.Fix, st style) string {
	if len(r.Plan) < 2 {
		return ""
	}
	var steps []string
	before := estimate(r.Step.MeanSeconds, st)
	for _, p := range r.Plan {
		after := known(p.StepSeconds, st)
		steps = append(steps, planTitle(p, list)+" ("+stepNote(before, after, p)+")")
		before = after
	}
	return strings.Join(steps, ", then ") + "."
}

func stepNote(before, after Quantity, p analysis.PlanStep) string {
	s := before.Number + " → " + after.Text
	if limit := then(p.BottleneckAfter); limit != "" {
		s += ", " + limit
	}
	return s
}

// planTitle names a step. After another fix it may read differently than in the table: "3 workers" for "7 workers".
func planTitle(p analysis.PlanStep, list []analysis.Fix) string {
	if p.Title != "" {
		return Clean(p.Title, 2*nameRunes)
	}
	for _, x := range list {
		if x.ID == p.ID {
			return Clean(x.Title, 2*nameRunes)
		}
	}
	return cleanName(p.ID)
}

// limits are the words for what binds a step; the ids are those of the loader model.
var limits = map[string]string{
	"compute": "compute-bound", "cores": "limited by CPU cores", "workers": "limited by the number of workers", "shared": "limited by what workers share",
	"main": "limited by the training process",
}

func then(bottleneck string) string {
	if words, ok := limits[bottleneck]; ok {
		return "then " + words
	}
	if b := cleanName(bottleneck); b != "" {
		return "then " + b
	}
	return ""
}

func noHelp(r *analysis.Result) []NoHelp {
	var out []NoHelp
	for _, x := range r.NoHelp {
		out = append(out, NoHelp{Title: orWords(Clean(x.Title, 2*nameRunes), cleanName(x.ID)), Reason: clause(x.Reason), Saved: share(x.SavedShare)})
	}
	return out
}

// mostInShort is how many reasons the first screen gives; the list below it has all.
const mostInShort = 4

// inShort writes each advice in a few words, and those that fail for one reason together:
// "mixed precision, pin_memory (0 %: compute hides behind the wait)". Beyond a few reasons it only counts.
func inShort(all []NoHelp) []string {
	var out []string
	said := 0
	for i, n := range all {
		if slices.ContainsFunc(all[:i], n.alike) {
			continue // said with the first of its kind
		}
		if len(out) == mostInShort {
			return append(out, fmt.Sprintf("and %d more", len(all)-said))
		}
		var titles []string
		for _, m := range all {
			if n.alike(m) {
				titles = append(titles, m.Title)
			}
		}
		said += len(titles)
		out = append(out, strings.Join(titles, ", ")+n.why())
	}
	return out
}

// why is what advice saves and the reason, in parentheses: a title may end in a number of its own.
func (n NoHelp) why() string {
	switch {
	case n.Saved.Known && n.Reason != "":
		return " (" + n.Saved.Text + ": " + n.Reason + ")"
	case n.Saved.Known:
		return " (" + n.Saved.Text + ")"
	case n.Reason != "":
		return " (" + n.Reason + ")"
	}
	return ""
}

// alike reports whether two pieces of advice fail in the same way: one sentence says both.
func (n NoHelp) alike(m NoHelp) bool { return m.Reason == n.Reason && m.Saved.Text == n.Saved.Text }

// unpriced lists what may help by an amount this run cannot tell.
func unpriced(r *analysis.Result) []Unpriced {
	var out []Unpriced
	for _, x := range r.Unpriced {
		u := Unpriced{Title: orWords(Clean(x.Title, 2*nameRunes), cleanName(x.ID)), How: upper(sentence(x.How)), Recipe: cleanName(x.Recipe), Reason: upper(sentence(x.Reason))}
		out = append(out, u)
	}
	return out
}

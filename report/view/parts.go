package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis"
)

// Anatomy is a whole cut into parts, for a stacked bar and one line of text. Parts are written in the unit of the whole.
type Anatomy struct {
	Name  string // "A step"
	Whole Quantity
	Unit  string // "ms": the unit of the parts
	Parts []Part
	Notes []string
}

// Part is one piece of a whole.
type Part struct {
	ID    string
	Name  string
	Text  string   // a bare number in the unit of the whole, or "unknown"
	Share Quantity // of the whole
	Note  string   // "38 requests"
	Value float64  // seconds, for geometry; 0 for a missing part
	Known bool
}

// step is the mean step in steady state. Its parts are rounded so that the shown numbers add up to the shown whole.
func step(r *analysis.Result) Anatomy {
	a := Anatomy{Name: "A step"}
	st, unitName := stepStyle(r)
	a.Whole, a.Unit = estimate(r.Step.MeanSeconds, st), unitName
	least := st.factor / math.Pow10(st.digits(a.Whole.Value)) / 2 // what would read as nothing is left out
	parts := slices.DeleteFunc(slices.Clone(r.Step.Anatomy), func(p analysis.Part) bool { return a.Whole.Known && math.Abs(p.Seconds) < least })
	slices.SortStableFunc(parts, func(x, y analysis.Part) int { return cmp.Compare(stepOrder(x.Name), stepOrder(y.Name)) })
	values := make([]float64, len(parts))
	for i, p := range parts {
		values[i] = p.Seconds
	}
	texts := apportion(values, a.Whole.Value, st)
	for i, p := range parts {
		q := known(p.Seconds, st)
		part := Part{ID: cleanName(p.Name), Name: partName(p.Name, parts), Text: q.Text, Note: q.Why, Share: known(p.Share, percentStyle), Value: q.Value, Known: q.Known}
		if q.Known {
			part.Text = texts[i]
		}
		a.Parts = append(a.Parts, part)
	}
	a.Notes = stepNotes(r)
	return a
}

// partName names a part. Without a device clock only the wait is told apart: what is left is no riddle, it is the work.
func partName(id string, parts []analysis.Part) string {
	wait := func(p analysis.Part) bool { return p.Name == "data_wait" || p.Name == id }
	if id == "unexplained" && len(parts) == 2 && wait(parts[0]) && wait(parts[1]) {
		return "computing and all else"
	}
	return accountName(id)
}

// stepOrder puts what a fix can win back first.
func stepOrder(name string) int {
	order := []string{"exposed_wait", "data_wait", "epoch_start", "copy", "compute", "collective", "host"}
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order) + max(0, slices.Index(accountOrder, name))
}

func stepNotes(r *analysis.Result) []string {
	var notes []string
	if r.Job.StepIs == "fetch" {
		notes = append(notes, "no optimizer step was seen, so that each fetch of a batch counts as a step")
	}
	if q := share(r.Step.HandoffShare); q.Known {
		notes = append(notes, "hand-off "+q.Text+" of a step")
	}
	if q := scaled(r.Step.P99WaitSeconds, timeScales); q.Known {
		notes = append(notes, "1 wait in 100 is longer than "+q.Text)
	}
	if q := share(r.Step.EpochStartShare); q.Known && q.Value > 0 {
		notes = append(notes, "epoch starts take "+q.Text+" of the run")
	}
	return notes
}

// stepStyle is the scale of the live step, which every step time of the report shares, and its unit.
func stepStyle(r *analysis.Result) (style, string) {
	base := 0.0
	if e, ok := r.Step.MeanSeconds.Get(); ok {
		base = e.Value
	} else if r.Baseline != nil {
		e, _ := r.Baseline.Legs["live"].StepSeconds.Get()
		base = e.Value
	}
	if math.IsNaN(base) || math.IsInf(base, 0) {
		base = 0
	}
	st := scaleStyle(timeScales, base)
	st.digits = func(float64) int { return max(1, digitsAfter(base/st.factor)) } // a tenth of a millisecond of a step of 400 counts
	return st, pick(timeScales, base).suffix
}

// apportion writes parts so that the shown numbers add up to the shown whole: each is rounded down, and what is then
// missing goes to those that lost most. Parts that do not add up to the whole are rounded one by one.
func apportion(parts []float64, whole float64, st style) []string {
	texts := make([]string, len(parts))
	sum := 0.0
	for i, p := range parts {
		texts[i], sum = st.number(p, st.digits(whole)), sum+p
	}
	one := st.factor / math.Pow10(st.digits(whole)) // the smallest difference shown
	if one <= 0 || math.IsNaN(sum) || math.Abs(sum-whole) > one/2 {
		return texts
	}
	units := make([]float64, len(parts))
	order := make([]int, len(parts))
	left := math.Round(whole / one)
	for i, p := range parts {
		units[i], order[i] = math.Floor(p/one), i
		left -= units[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b]/one-units[b], parts[a]/one-units[a]) })
	for _, i := range order {
		if left > 0 {
			units[i]++
			left--
		}
	}
	for i := range parts {
		if units[i] > 0 {
			texts[i] = st.number(units[i]*one, st.digits(whole))
		}
	}
	return texts
}

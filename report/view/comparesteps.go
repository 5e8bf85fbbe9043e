package view

import (
	"strings"

	"github.com/datawait/datawait/analysis/compare"
)

// compareSteps are the mean steps of both runs cut into their parts, in one unit, so that they can be drawn to one scale. None where
// a step is not compared.
func compareSteps(c *compare.Comparison) []Anatomy {
	step := rowIn(c.Rows, compare.RowStep)
	if !step.Outcome.Compared() {
		return nil
	}
	st, _ := pairStyles(timeScales, step)
	out := []Anatomy{{Name: "Before"}, {Name: "After"}}
	for i := range out {
		out[i].Unit = strings.TrimPrefix(st.unit, nbsp)
	}
	out[0].Whole, out[1].Whole = estimate(step.Before, st), estimate(step.After, st)
	for _, r := range orderedParts(c.Step) {
		for i, m := range []Quantity{estimate(r.Before, st), estimate(r.After, st)} {
			if m.Known && m.Value != 0 {
				out[i].Parts = append(out[i].Parts, Part{ID: cleanName(r.ID), Name: accountName(r.ID), Text: m.Number, Value: m.Value, Known: true})
			}
		}
	}
	if len(out[0].Parts) == 0 || len(out[1].Parts) == 0 {
		return nil
	}
	return out
}

func orderedParts(rows []compare.Row) []compare.Row {
	var out []compare.Row
	for n := range len(accountOrder) + 16 {
		for _, r := range rows {
			if stepOrder(r.ID) == n {
				out = append(out, r)
			}
		}
	}
	return out
}

// changeNames are the words for what was changed, where they are not the argument's own name.
var changeNames = map[string]string{"usable_cores": "usable cores", "gpu": "GPU"}

func changeTable(changed []compare.Change) Table {
	t := Table{Columns: []Column{{"changed", false}, {"before", false}, {"after", false}}}
	for _, x := range changed {
		t.Rows = append(t.Rows, []Cell{textCell(orWords(changeNames[x.What], cleanName(x.What))), textCell(Clean(x.Before, 3*nameRunes)), textCell(Clean(x.After, 3*nameRunes))})
	}
	return t
}

func compareMethod(c *compare.Comparison) []Fact {
	out := []Fact{
		{"Difference", "Its 95 % interval combines those of both numbers as of independent measurements. Where it holds no difference, or one of less than " +
			percent(compare.Trifle) + " (of a share: " + known(compare.TrifleShare, percentStyle).Number + " point), there is no meaningful difference."},
		{"One run each", "The intervals hold what varies within a run. Two runs of one job differ by more: repeat a comparison before much depends on it."},
		{"An epoch", "Its steps at the mean of the steady ones, and its start. Validation and checkpoints are apart."},
		{"Reading", "Means of all batches seen, times those of an epoch of all ranks: a cache that filled while the run was watched is in them."},
		{"Predictions", "A prediction was made from the run before alone. It is judged where only its fix was changed and as it was predicted; the measured value is to lie in its interval."},
	}
	if q := ratio(c.HourCost, moneyStyle); q.Known {
		out = append(out, Fact{"Money", "At " + q.Text + " a GPU-hour."})
	}
	return out
}

// compareTerms are the words that a comparison uses.
func compareTerms() []Term {
	var out []Term
	for _, t := range terms() {
		switch t.Word {
		case "step", "data wait", "exposed wait", "epoch start", "SM activity", "cached-data test", "run queue", "off-CPU", "95 % interval", "grade":
			out = append(out, t)
		}
	}
	return out
}

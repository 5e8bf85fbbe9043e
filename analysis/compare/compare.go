package compare

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// Options are what a reader may choose. The zero Options is right.
type Options struct {
	Version  string   // of the program that compares
	Applied  []string // the fixes that were applied, where the reader says so; they are seen otherwise, as far as they can be
	Epochs   int      // of the run that is reckoned; 0 = what the two runs took, where both were watched to their end
	HourCost float64  // of a GPU; 0 = what both results were made with

	epochs unit.Maybe[int]
	price  analysis.Ratio
	whole  string // why no run was watched as a whole
}

// Run compares two results. It never fails: what cannot be compared is part of what it returns.
func Run(before, after Input, o Options) *Comparison {
	b, a := newSide(before), newSide(after)
	o.settle(b, a)
	c := &Comparison{Schema: Schema, Version: o.Version, Emulated: b.Emulated && a.Emulated, Before: b.describe(), After: a.describe(), Epochs: o.epochs, HourCost: o.price,
		Changes: changes(b, a), Predictions: []Check{}, Unclear: []string{}}
	refusal := whole(b, a)
	c.Objections = objections(b, a, refusal)
	c.Rows, c.Batch = rows(measures, b, a, o, refusal), rows(perBatch, b, a, o, refusal)
	c.Accounts, c.Step = accounts(b, a, refusal), anatomy(b, a, refusal)
	c.Comparable = slices.ContainsFunc(c.Rows, func(r Row) bool { return r.Outcome.Compared() })
	if c.Comparable {
		c.Predictions, c.Unclear = checks(b, a, o, c.Changes)
	}
	return c
}

// settle turns what the reader chose into what rows need.
func (o *Options) settle(b, a side) {
	o.epochs = unit.None[int]("no length of the training was given (--epochs)")
	if o.Epochs > 0 {
		o.epochs = unit.Some(o.Epochs)
	}
	o.whole = wholeRuns(b, a)
	x, known := b.HourCost.Get()
	y, also := a.HourCost.Get()
	switch {
	case o.HourCost > 0:
		o.price = unit.Some(o.HourCost)
	case known && also && x == y:
		o.price = unit.Some(x)
	case known && also:
		o.price = unit.None[float64]("the reports were made with different prices of a GPU-hour; give one with --gpu-hour-cost")
	default:
		o.price = unit.None[float64]("no price of a GPU-hour was given (--gpu-hour-cost)")
	}
}

// rows makes the rows of a table.
func rows(of []measure, b, a side, o Options, refusal string) []Row {
	out := make([]Row, 0, len(of))
	for _, m := range of {
		r := weigh(m.id, m.unit, m.want, m.of(b, o), m.of(a, o), m.why(b, a, refusal))
		if m.id == RowSM && r.Outcome.Compared() {
			r.Note = smNote(b, a)
		}
		out = append(out, r)
	}
	return out
}

// why is the first reason for which the two numbers of a row are not compared.
func (m measure) why(b, a side, refusal string) string {
	if refusal != "" {
		return refusal
	}
	for _, need := range order {
		if slices.Contains(m.needs, need) {
			if text := differs[need](b, a); text != "" {
				return text
			}
		}
	}
	return ""
}

// objections lists what keeps rows from being compared, and what is to be known.
func objections(b, a side, refusal string) []Objection {
	all := append(slices.Clone(measures), perBatch...)
	if refusal != "" {
		return append([]Objection{{ID: "emulated", Text: refusal, Rows: ids(all)}}, remarks(b, a)...)
	}
	out := []Objection{}
	for _, need := range order {
		text := differs[need](b, a)
		if text == "" {
			continue
		}
		touched := slices.DeleteFunc(slices.Clone(all), func(m measure) bool { return !slices.Contains(m.needs, need) })
		out = append(out, Objection{ID: string(need), Text: text, Rows: ids(touched)})
	}
	return append(out, remarks(b, a)...)
}

func ids(of []measure) []string {
	out := []string{}
	for _, m := range of {
		out = append(out, m.id)
	}
	return out
}

// identity tells runs apart: the same for two results of one recording.
func identity(s side) string {
	h := fnv.New64a()
	started, _ := s.StartedAt.Get()
	fmt.Fprintln(h, started.UTC(), s.Nodes, s.Job.Command, s.Job.Steps)
	for _, r := range s.Ranks {
		fmt.Fprintln(h, r.Host, r.PID, r.Rank, r.Steps)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
)

// Comparison is two runs side by side, ready to be laid out.
type Comparison struct {
	Title       string   // one plain line
	Sides       []Line   // what ran before, and after
	Banners     []Banner // what a reader must know before any number
	Headline    Headline
	Groups      []RowGroup // the table, in groups of rows
	Steps       []Anatomy  // the mean step before and after; empty where its parts are not known of both
	Changes     Table
	Checks      []Check
	Unclear     []string // why a fix that may have been applied is not checked
	NoChecks    string   // why nothing is checked; "" where something is
	Record      string   // how earlier predictions came out; "" where none was checked
	Accounts    RowGroup
	Batch       RowGroup
	NotCompared []Gap
	Remarks     []string // what is to be known besides
	Method      []Fact
	Terms       []Term
}

// Line is the name of a side and what ran there.
type Line struct {
	Name   string // before or after
	Pieces []Phrase
}

// RowGroup is a part of the table with a name of its own.
type RowGroup struct {
	Name string
	Rows []CompareRow
}

// CompareRow is one number before and after.
type CompareRow struct {
	ID            string
	Name          string
	Before, After Quantity
	Change        Quantity
	Grade         string // of the weaker of both numbers
	Outcome       string // in words; "" where no interval weighs the difference
	Short         string // the same below a head that says "difference"
	Kind          string // better, worse, no-meaningful-difference, unweighed, not-comparable or unknown
	Why           string // it is not compared or not weighed
	Note          string
}

// NewComparison builds the display model of a comparison. It never fails: whatever c lacks becomes words.
func NewComparison(c *compare.Comparison) Comparison {
	v := Comparison{
		Sides:       []Line{{"before", sidePieces(c.Before)}, {"after", sidePieces(c.After)}},
		Banners:     compareBanners(c),
		Headline:    compareHeadline(c),
		Groups:      rowGroups(c),
		Steps:       compareSteps(c),
		Changes:     changeTable(c.Changes),
		Checks:      checksOf(c),
		Record:      recordSentence(c.TrackRecord),
		Batch:       group(c, "A batch, in its worker", c.Batch, nil),
		Accounts:    accountGroup(c),
		NotCompared: notCompared(c),
		Method:      compareMethod(c),
		Terms:       compareTerms(),
	}
	for _, text := range c.Unclear {
		if id, _, _ := strings.Cut(text, ":"); strings.Contains(id, " ") { // else the name of a fix
			text = upper(text)
		}
		v.Unclear = append(v.Unclear, sentence(text))
	}
	for _, o := range c.Objections {
		if len(o.Rows) == 0 {
			v.Remarks = append(v.Remarks, upper(sentence(o.Text)))
		}
	}
	v.NoChecks = noChecks(c, v)
	if !c.Comparable {
		v.Batch, v.Accounts, v.Record = RowGroup{}, RowGroup{}, ""
	}
	v.Title = title(v.Headline)
	return v
}

// sidePieces says what ran on one side.
func sidePieces(s compare.Side) []Phrase {
	out := []Phrase{{orWords(cleanName(s.Name), "unnamed job"), true}, {plural(s.Ranks, "rank"), false}}
	if len(s.GPUs) > 0 {
		out = append(out, Phrase{cleanName(strings.Join(s.GPUs, ", ")), true})
	}
	steps := "no steady step"
	if s.Steady > 0 {
		steps = plural(s.Steady, "steady step") + " of " + count(s.Steps)
	}
	out = append(out, Phrase{steps, false})
	if at := when(&analysis.Result{StartedAt: s.StartedAt}); at != "" {
		out = append(out, Phrase{at, false})
	}
	if s.Path != "" {
		out = append(out, Phrase{cleanName(s.Path), true})
	}
	return out
}

// compareBanners are what a reader must know before any number.
func compareBanners(c *compare.Comparison) []Banner {
	var out []Banner
	if c.Emulated {
		out = append(out, Banner{"emulated", "Emulated GPU", "The GPU is a program that keeps a log, not hardware. What is said about the input pipeline is real; GPU numbers hold for the emulation only."})
	}
	if !c.Comparable {
		out = append(out, Banner{"withheld", "Not comparable", upper(sentence(refusalOf(c)))})
		return out
	}
	for _, o := range c.Objections {
		if len(o.Rows) > 0 {
			out = append(out, Banner{"partly", "Partly comparable", upper(sentence(o.Text))})
		}
	}
	return out
}

// refusalOf is why nothing is compared.
func refusalOf(c *compare.Comparison) string {
	for _, o := range c.Objections {
		if len(o.Rows) > 0 {
			return o.Text
		}
	}
	for _, r := range c.Rows {
		if r.ID == compare.RowStep {
			return "of neither a step nor anything else do both runs know a number; the step: " + r.Why
		}
	}
	return "nothing is known of both runs"
}

// compareHeadline is what the comparison comes to, and its size.
func compareHeadline(c *compare.Comparison) Headline {
	if !c.Comparable {
		text := "These two runs cannot be held against each other."
		return Headline{Lead: "Not comparable", Text: text, Plain: text, Pieces: []Piece{{text, false}}}
	}
	marked := compareSizes(c, withDoubt)
	h := Headline{Lead: compareLead(c), Text: strings.ReplaceAll(marked, aside, ""), Plain: compareSizes(c, bare)}
	for i, s := range strings.Split(marked, aside) {
		if s != "" {
			h.Pieces = append(h.Pieces, Piece{s, i%2 == 1})
		}
	}
	return h
}

// leading are the rows that decide the first words, and how those read.
var leading = []struct{ id, better, worse string }{
	{compare.RowStep, "Faster", "Slower"}, {compare.RowEpoch, "Faster", "Slower"}, {compare.RowSamples, "Faster", "Slower"},
	{compare.RowSM, "The GPU works more", "The GPU works less"}, {compare.RowWait, "Less wait for data", "More wait for data"},
}

func compareLead(c *compare.Comparison) string {
	for _, l := range leading {
		switch rowIn(c.Rows, l.id).Outcome {
		case compare.Better:
			return l.better
		case compare.Worse:
			return l.worse
		case compare.Same:
			return "No meaningful difference"
		}
	}
	return "Partly comparable"
}

// compareSizes says how long a step or an epoch takes and how much the GPUs work, before and after.
func compareSizes(c *compare.Comparison, show func(Quantity) string) string {
	var out []string
	for _, x := range []struct{ id, takes string }{{compare.RowStep, "A step takes "}, {compare.RowEpoch, "An epoch takes "}} {
		r := compareRow(c, rowIn(c.Rows, x.id))
		if !r.Before.Known || !r.After.Known || !compared(r) {
			continue
		}
		s := x.takes + show(r.After) + " instead of " + show(r.Before)
		if speed := speedUp(rowIn(c.Rows, x.id), show); speed != "" {
			s += ": " + speed
		}
		out = append(out, s+".")
		break
	}
	if r := compareRow(c, rowIn(c.Rows, compare.RowSM)); r.Before.Known && r.After.Known && compared(r) {
		s := "SM activity is " + show(r.After) + " of the allocated time instead of " + show(r.Before)
		if r.Kind == string(compare.Same) {
			s += ": " + r.Outcome
		}
		out = append(out, s+".")
	}
	if len(out) == 0 {
		return "Only some numbers of these two runs can be held against each other."
	}
	return strings.Join(out, " ")
}

func compared(r CompareRow) bool { return r.Kind != "not-comparable" && r.Kind != "unknown" }

// speedUp says how many times as fast something became.
func speedUp(r compare.Row, show func(Quantity) string) string {
	e, ok := r.Ratio.Get()
	switch {
	case r.Outcome == compare.Same:
		return "no meaningful difference"
	case !ok || !(e.Low > 0):
		return ""
	}
	e.Value, e.Low, e.High = 1/e.Value, 1/e.High, 1/e.Low
	return show(estimate(someEst(e), timesStyle)) + " as fast"
}

func rowIn(rows []compare.Row, id string) compare.Row {
	for _, r := range rows {
		if r.ID == id {
			return r
		}
	}
	return compare.Row{ID: id, Outcome: compare.Unknown}
}

package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// WriteComparison lays two runs side by side out on w.
func WriteComparison(w io.Writer, v view.Comparison, o Options) error {
	p := &page{width: Width, paint: paint(o.Color)}
	if o.Width > 0 {
		p.width = max(40, min(Width, o.Width))
	}
	p.sides(v)
	p.wrap(p.paint.bold, "", "", v.Headline.Lead+": "+v.Headline.Text)
	p.blank()
	p.compareTable(v.Groups)
	if !o.Brief {
		p.changes(v.Changes)
	}
	p.checks(v)
	if !o.Brief {
		p.compareTable([]view.RowGroup{v.Accounts})
		p.left(v)
	}
	if len(o.Files) > 0 {
		s := strings.Join(o.Files, ", ")
		if o.Dir != "" {
			s += fmt.Sprintf(" in %s", view.Clean(o.Dir, Width))
		}
		p.wrap(p.paint.none, "", "", s)
	}
	_, err := io.WriteString(w, strings.ReplaceAll(p.String(), nbsp, " "))
	return err
}

// sides says what ran, one line a side, and what a reader must know first.
func (p *page) sides(v view.Comparison) {
	for _, s := range v.Sides {
		var parts []string
		for _, x := range s.Pieces {
			parts = append(parts, x.Text)
		}
		p.wrap(p.paint.bold, pad("datawait compare · "+s.Name, len("datawait compare · before")+1)+" ", "    ", strings.Join(parts, " · "))
	}
	for _, b := range v.Banners {
		p.wrap(p.paint.warn, "  ! ", "    ", b.Lead+": "+b.Text)
	}
	p.blank()
}

// compareTable writes the groups of rows below one head. Intervals stand beside the numbers where all of them fit.
func (p *page) compareTable(groups []view.RowGroup) {
	t := compareGrid(groups, true)
	if t.width() > p.width {
		t = compareGrid(groups, false)
	}
	if len(t.lines) == 0 {
		return
	}
	p.gridLine(t, []string{"", "before", "after", "change", "grade", "difference"}, p.paint.faint)
	n := 0
	for _, g := range groups {
		if len(g.Rows) > 0 {
			p.line(p.paint.bold(g.Name))
		}
		for _, r := range g.Rows {
			p.gridLine(t, t.lines[n], p.paint.none)
			p.wrap(p.paint.faint, "    ", "    ", r.Note)
			n++
		}
	}
	p.blank()
}

// grid is cells in columns that are as wide as their widest cell.
type grid struct {
	lines  [][]string
	widths []int
}

func compareGrid(groups []view.RowGroup, ranges bool) grid {
	t := grid{widths: []int{0, len("before"), len("after"), len("change"), len("grade"), len("difference")}}
	for _, g := range groups {
		for _, r := range g.Rows {
			cells := compareCells(r, ranges)
			for i, c := range cells {
				t.widths[i] = max(t.widths[i], columns(c))
			}
			t.lines = append(t.lines, cells)
		}
	}
	return t
}

func (t grid) width() int {
	sum := 0
	for _, w := range t.widths {
		sum += w + 2
	}
	return sum
}

func compareCells(r view.CompareRow, ranges bool) []string {
	number := func(q view.Quantity) string {
		if ranges && q.Span != "" {
			return q.Text + " (" + q.Span + ")"
		}
		return q.Text
	}
	change := r.Change.Text
	if !r.Change.Known {
		change = ""
	}
	return []string{r.Name, number(r.Before), number(r.After), change, r.Grade, r.Short}
}

// gridLine writes one line of a table; the numbers stand at the right of their columns. What does not fit is wrapped.
func (p *page) gridLine(t grid, cells []string, paint func(string) string) {
	s := "  " + pad(cells[0], t.widths[0])
	for i := 1; i <= 3; i++ {
		s += "  " + padLeft(cells[i], t.widths[i])
	}
	s = strings.TrimRight(s+"  "+pad(cells[4], t.widths[4])+"  "+cells[5], " ")
	if columns(s) <= p.width {
		p.line(paint(s))
		return
	}
	p.wrap(paint, "  ", "      ", strings.Join(cells, "  "))
}

// changes are what was made otherwise.
func (p *page) changes(t view.Table) {
	if len(t.Rows) == 0 {
		return
	}
	var parts []string
	for _, row := range t.Rows {
		parts = append(parts, row[0].Text+" "+row[1].Text+" → "+row[2].Text)
	}
	p.wrap(p.paint.none, "Changed: ", hang, strings.Join(parts, " · "))
	p.blank()
}

// checks are the predictions beside what came of them.
func (p *page) checks(v view.Comparison) {
	p.line(p.paint.bold("Predicted and measured"))
	for _, c := range v.Checks {
		s := c.Title + ": predicted " + c.Predicted.WithRange() + ", measured " + c.Measured.WithRange()
		if c.Error.Known {
			s += " (" + c.Error.Text + ")"
		}
		s += ": " + c.Verdict
		if c.Why != "" {
			s += ", because " + c.Why
		}
		s += "."
		if c.Kind != "open" {
			s += " Applied: " + c.Seen
		}
		p.wrap(p.paint.none, "  ", hang, s)
	}
	p.wrap(p.paint.none, "  ", "  ", v.NoChecks)
	for _, s := range v.Unclear {
		p.wrap(p.paint.none, "  ", hang, s)
	}
	if v.Record != "" {
		p.wrap(p.paint.none, "  ", "  ", "Track record: "+v.Record+".")
	}
	p.blank()
}

// left says what is not compared, and what else is to be known.
func (p *page) left(v view.Comparison) {
	for _, g := range v.NotCompared {
		p.wrap(p.paint.none, "Not compared: ", hang, g.What+". "+g.Why)
	}
	for _, s := range v.Remarks {
		p.wrap(p.paint.none, "Note: ", hang, s)
	}
	if len(v.Method) > 1 {
		p.wrap(p.paint.faint, "", "", v.Method[1].Name+": "+v.Method[1].Text)
	}
	p.blank()
}

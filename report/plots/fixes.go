package plots

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/datawait/datawait/report/view"
)

// Fixes draws the predicted step time of each fix with its interval, against today's step and against the step on batches
// that are already in memory, which no fix of the input pipeline can beat.
func Fixes(v view.View) Figure {
	rows := known(v.Fixes.Rows)
	if len(rows) == 0 || !v.Step.Whole.Known {
		return Figure{}
	}
	const width, row, foot = 820, 30, 40
	n := len(rows)
	longest := v.Step.Whole.Value
	for _, f := range rows {
		longest = max(longest, f.To.High)
	}
	return Figure{Name: "fixes", Alt: fixesAlt(v, rows), Width: width, Height: vg.Length(n*row + foot), draw: func(p *pen) {
		c := fixChart{pen: p, left: 270, right: width - 150, longest: longest * 1.02}
		c.reference(v, vg.Length(n*row), foot)
		for i, f := range rows {
			c.fix(f, vg.Length(foot+(n-i)*row-row/2))
		}
	}}
}

func known(rows []view.Fix) []view.Fix {
	var out []view.Fix
	for _, f := range rows {
		if f.To.Known {
			out = append(out, f)
		}
	}
	return out
}

type fixChart struct {
	*pen
	left, right vg.Length
	longest     float64
}

func (c fixChart) x(seconds float64) vg.Length {
	return c.left + (c.right-c.left)*vg.Length(between(seconds/c.longest, 0, 1))
}

func (c fixChart) fix(f view.Fix, y vg.Length) {
	const half = 8
	words := f.Position + "  " + f.Title
	c.text(left(normal, ink), 0, y, fit(left(normal, ink), words, c.left-12))
	c.box(working, c.left, y-half, c.x(f.To.Value), y+half)
	if f.To.Range != "" {
		c.whisker(c.x(f.To.Low), c.x(f.To.High), y, 5)
	}
	if f.Tried && f.From.Known {
		at := c.x(f.From.Value * (1 - f.Measured.Value))
		c.stroke(waiting, 3, nil, vg.Point{X: at, Y: y - half - 3}, vg.Point{X: at, Y: y + half + 3})
	}
	c.text(bold(right(normal, ink)), c.right+70, y, f.To.Text)
	c.text(right(normal, muted), c.right+146, y, minusOf(f))
}

// minusOf is how much of the step a fix saves, as a change.
func minusOf(f view.Fix) string {
	if !f.Saved.Known || strings.HasPrefix(f.Saved.Text, "−") {
		return ""
	}
	return "−" + f.Saved.Text
}

// reference draws today's step and the floor as lines, named below.
func (c fixChart) reference(v view.View, height, foot vg.Length) {
	line := func(x vg.Length, r role, words string, y vg.Length) {
		c.stroke(r, 1.2, []vg.Length{4, 3}, vg.Point{X: x, Y: foot - 4}, vg.Point{X: x, Y: foot + height})
		s := mid(small, muted)
		if x+widthOf(s, words)/2 > c.right+140 {
			s = right(small, muted)
		}
		c.text(s, x, y, words)
	}
	line(c.x(v.Step.Whole.Value), waiting, "today "+v.Step.Whole.Text, foot-12)
	for _, l := range v.Test.Legs {
		if l.ID == "host-cached" && l.Step.Known {
			line(c.x(l.Step.Value), muted, l.Name+" "+l.Step.Text, foot-28)
		}
	}
}

func fixesAlt(v view.View, rows []view.Fix) string {
	parts := []string{"Predicted step time of each fix; today " + v.Step.Whole.Text}
	for _, f := range rows {
		parts = append(parts, f.Title+" "+f.To.WithRange())
	}
	return strings.Join(parts, "; ") + "."
}

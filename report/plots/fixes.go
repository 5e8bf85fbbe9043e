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
	const width, row, head, foot = 820, 30, 22, 24
	n := len(rows)
	longest := v.Step.Whole.Value
	for _, f := range rows {
		longest = max(longest, f.To.Value, min(f.To.High, 1.3*v.Step.Whole.Value)) // a wide interval must not squeeze the rest
	}
	return Figure{Name: "fixes", Alt: fixesAlt(v, rows), Width: width, Height: vg.Length(head + n*row + foot), draw: func(p *pen) {
		c := fixChart{pen: p, left: 270, right: width - 150, longest: longest * 1.02}
		c.text(right(small, muted), c.right+70, vg.Length(foot+n*row+11), "step after it")
		c.text(right(small, muted), c.right+146, vg.Length(foot+n*row+11), "saved")
		c.floor(v, vg.Length(n*row), foot)
		for i, f := range rows {
			c.fix(f, vg.Length(foot+(n-i)*row-row/2))
		}
		c.key(rows, foot/2-2)
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
	c.text(right(normal, muted), 14, y, f.Position)
	c.text(left(normal, ink), 22, y, fit(left(normal, ink), f.Title, c.left-34))
	c.box(working, c.left, y-half, c.x(f.To.Value), y+half)
	if f.To.Range != "" {
		c.whisker(c.x(f.To.Low), c.x(f.To.High), y, 5)
		if f.To.High > c.longest {
			c.text(left(small, ink), c.right+1, y, "›") // it goes on
		}
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

// floor draws today's step and the step on batches in memory as lines, named above.
func (c fixChart) floor(v view.View, height, foot vg.Length) {
	today := c.x(v.Step.Whole.Value)
	c.dashed(waiting, today, foot, height, "today "+v.Step.Whole.Text)
	for _, l := range v.Test.Legs {
		if at := c.x(l.Step.Value); l.ID == "host-cached" && l.Step.Known && today-at > 190 {
			c.dashed(muted, at, foot, height, l.Name+" "+l.Step.Text)
		}
	}
}

func (c fixChart) dashed(r role, x, foot, height vg.Length, words string) {
	c.stroke(r, 1.2, []vg.Length{4, 3}, vg.Point{X: x, Y: foot}, vg.Point{X: x, Y: foot + height + 4})
	s := mid(small, muted)
	if half := widthOf(s, words) / 2; x+half > c.right+6 {
		x = c.right + 6 - half
	}
	c.text(s, x, foot+height+11, words)
}

// key explains the mark of a measured fix, where there is one.
func (c fixChart) key(rows []view.Fix, y vg.Length) {
	for _, f := range rows {
		if f.Tried {
			c.stroke(waiting, 3, nil, vg.Point{X: c.left + 1.5, Y: y - 6}, vg.Point{X: c.left + 1.5, Y: y + 6})
			c.text(left(small, muted), c.left+9, y, "measured in this run")
			return
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

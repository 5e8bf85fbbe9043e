package plots

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/datawait/datawait/report/view"
)

// Steps draws the mean steps of two runs below each other, to one scale, each cut into its parts.
func Steps(v view.Comparison) Figure {
	longest := 0.0
	for _, a := range v.Steps {
		if !a.Whole.Known || a.Whole.Value <= 0 {
			return Figure{}
		}
		longest = max(longest, a.Whole.Value)
	}
	if len(v.Steps) == 0 {
		return Figure{}
	}
	const width = 590
	height := vg.Length(0)
	for _, a := range v.Steps {
		height += anatomyHeight(a, width)
	}
	return Figure{Name: "steps", Alt: "Mean steps, to one scale. " + anatomyAlt(v.Steps), Width: width, Height: height, draw: func(p *pen) {
		top := height
		for _, a := range v.Steps {
			p.anatomy(a, top, width, longest)
			top -= anatomyHeight(a, width)
		}
	}}
}

// Checks draws what was predicted and what was measured below each other, to one scale. A prediction that could not be judged is not
// drawn: beside a measurement that is not its own it would look like a wrong one.
func Checks(v view.Comparison) Figure {
	var shown []view.Check
	longest := 0.0
	for _, c := range v.Checks {
		if c.Kind != "open" && c.Predicted.Known && c.Measured.Known && c.Predicted.Value > 0 {
			shown = append(shown, c)
			longest = max(longest, c.Predicted.High, c.Measured.High, c.Before.Value)
		}
	}
	if len(shown) == 0 {
		return Figure{}
	}
	const width, row = 590, 70
	n := len(shown)
	return Figure{Name: "predictions", Alt: checksAlt(shown), Width: width, Height: vg.Length(n * row), draw: func(p *pen) {
		for i, c := range shown {
			p.check(c, vg.Length((n-i)*row), width, longest)
		}
	}}
}

// check draws the name over two bars: what was predicted with its interval, and what was measured with its own.
func (p *pen) check(c view.Check, top, width vg.Length, longest float64) {
	const name, value, half = 74, 170, 6
	p.text(bold(left(normal, ink)), 0, top-9, fit(bold(left(normal, ink)), c.Title, width))
	full := width - name - value
	x := func(s float64) vg.Length { return name + full*vg.Length(between(s/longest, 0, 1)) }
	for i, b := range []struct {
		words string
		q     view.Quantity
		color role
	}{{"predicted", c.Predicted, resident}, {"measured", c.Measured, working}} {
		y := top - 30 - vg.Length(i*20)
		p.text(left(small, muted), 0, y, b.words)
		p.box(track, name, y-half, name+full, y+half)
		p.box(b.color, name, y-half, x(b.q.Value), y+half)
		if b.q.Range != "" {
			p.whisker(x(b.q.Low), x(b.q.High), y, 4)
		}
		p.text(right(small, ink), width, y, fit(right(small, ink), b.q.WithRange(), value-8))
	}
}

func checksAlt(all []view.Check) string {
	var out []string
	for _, c := range all {
		out = append(out, c.Title+": predicted "+c.Predicted.WithRange()+", measured "+c.Measured.WithRange()+", "+c.Verdict)
	}
	return "Predicted and measured. " + strings.Join(out, "; ") + "."
}

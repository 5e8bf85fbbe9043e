package plots

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/datawait/datawait/report/view"
)

// Test draws the step time of live data against batches in memory: two bars, with their intervals and SM activity.
func Test(t view.Test) Figure { return legs("test", t, 2) }

// Legs draws every leg of the test.
func Legs(t view.Test) Figure { return legs("legs", t, len(t.Legs)) }

func legs(name string, t view.Test, most int) Figure {
	shown := t.Legs[:min(most, len(t.Legs))]
	if len(shown) == 0 {
		return Figure{}
	}
	const width, row = 400, 62
	longest := 0.0
	for _, l := range shown {
		longest = max(longest, l.Step.High)
	}
	n := len(shown)
	return Figure{Name: name, Alt: legsAlt(shown, t), Width: width, Height: vg.Length(n*row + 4), draw: func(p *pen) {
		for i, l := range shown {
			p.leg(l, vg.Length((n-i)*row), width, longest)
		}
	}}
}

// leg draws a name over a bar, and the step time and SM activity beside them.
func (p *pen) leg(l view.Leg, top, width vg.Length, longest float64) {
	const half, value = 8, 66
	color := working
	if l.ID == "live" {
		color = waiting
	}
	p.text(left(normal, ink), 0, top-12, upper(l.Name))
	p.text(right(small, muted), width, top-12, "SM activity "+l.SM.Text)
	y := top - 34
	if !l.Step.Known {
		p.text(left(small, muted), 0, y, fit(left(small, muted), "step "+l.Step.Words(), width))
		return
	}
	full := width - value
	x := func(s float64) vg.Length { return full * vg.Length(between(s/longest, 0, 1)) }
	p.box(track, 0, y-half, full, y+half)
	p.box(color, 0, y-half, x(l.Step.Value), y+half)
	if l.Step.Range != "" {
		p.whisker(x(l.Step.Low), x(l.Step.High), y, 5)
	}
	p.text(bold(right(normal, ink)), width, y, l.Step.Text)
}

func legsAlt(legs []view.Leg, t view.Test) string {
	var parts []string
	for _, l := range legs {
		parts = append(parts, l.Name+": a step takes "+l.Step.WithRange()+", SM activity "+l.SM.Words())
	}
	return "Cached-data test. " + upper(strings.Join(parts, "; ")) + "; " + t.Speed + "."
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Anatomy draws each whole as a bar cut into its parts, with every part named below it.
func Anatomy(name string, list []view.Anatomy) Figure {
	var shown []view.Anatomy
	for _, a := range list {
		if a.Whole.Known && a.Whole.Value > 0 && len(a.Parts) > 0 {
			shown = append(shown, a)
		}
	}
	if len(shown) == 0 {
		return Figure{}
	}
	const width = 590
	height := vg.Length(0)
	for _, a := range shown {
		height += anatomyHeight(a, width)
	}
	return Figure{Name: name, Alt: anatomyAlt(shown), Width: width, Height: height, draw: func(p *pen) {
		top := height
		for _, a := range shown {
			p.anatomy(a, top, width, a.Whole.Value)
			top -= anatomyHeight(a, width)
		}
	}}
}

const keyLine = 19

func anatomyHeight(a view.Anatomy, width vg.Length) vg.Length {
	lines := 0
	for _, k := range keyOf(a, width) {
		lines = max(lines, k.line+1)
	}
	return vg.Length(58 + lines*keyLine)
}

// anatomy draws one whole; full is what a bar over the whole width stands for.
func (p *pen) anatomy(a view.Anatomy, top, width vg.Length, full float64) {
	p.text(bold(left(normal, ink)), 0, top-9, fit(bold(left(normal, ink)), a.Name+", "+a.Whole.WithRange(), width))
	x, y := vg.Length(0), top-34
	p.box(track, 0, y-12, width, y+12)
	for _, part := range a.Parts {
		w := min(width*vg.Length(between(part.Value/full, 0, 1)), width-x)
		if w > 0 {
			p.box(partRole(part.ID), x, y-12, x+w, y+12)
			p.stroke(paper, 1, nil, vg.Point{X: x + w, Y: y - 12}, vg.Point{X: x + w, Y: y + 12})
		}
		x += w
	}
	for _, k := range keyOf(a, width) {
		ky := y - 27 - vg.Length(k.line*keyLine)
		p.box(partRole(k.id), k.x, ky-5, k.x+10, ky+5)
		p.text(left(small, ink), k.x+14, ky, k.words)
	}
}

// placed is the name and number of a part, and where it stands below its bar.
type placed struct {
	id, words string
	x         vg.Length
	line      int
}

// keyOf places the names of the parts, in as many lines as they need.
func keyOf(a view.Anatomy, width vg.Length) []placed {
	var out []placed
	x, line := vg.Length(0), 0
	for _, part := range a.Parts {
		words := part.Name + " " + part.Text
		if part.Known {
			words += " " + a.Unit
		}
		if part.Known && part.Note != "" {
			words += " (" + part.Note + ")"
		}
		words = fit(left(small, ink), words, width-14)
		w := 14 + widthOf(left(small, ink), words)
		if x > 0 && x+w > width {
			x, line = 0, line+1
		}
		out = append(out, placed{part.ID, words, x, line})
		x += w + 16
	}
	return out
}

func anatomyAlt(list []view.Anatomy) string {
	var out []string
	for _, a := range list {
		var parts []string
		for _, x := range a.Parts {
			s := x.Name + " " + x.Text
			if x.Known {
				s += " " + a.Unit
			}
			parts = append(parts, s)
		}
		out = append(out, a.Name+" takes "+a.Whole.Text+": "+strings.Join(parts, ", ")+".")
	}
	return strings.Join(out, " ")
}

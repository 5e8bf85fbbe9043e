// Package plots draws the pictures of a report with gonum/plot: the ladder from allocated to working, the cached-data test,
// the anatomy of a step, the ranked fixes, and SM activity over data wait.
//
// A [Figure] is drawn on demand, as SVG for a page that has light and dark colours or as PNG for a ticket. It shows only
// what the view says: every number in it is a text of the view, and values serve for lengths alone.
package plots

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/datawait/datawait/report/view"
)

// Figure is one picture, not yet drawn.
type Figure struct {
	Name          string // part of a file name: "ladder"
	Alt           string // the same in words, for those who cannot see it
	Width, Height vg.Length
	draw          func(*pen)
}

// All returns the figures that have something to show, in the order of the report.
func All(v view.View) []Figure {
	all := []Figure{Ladder(v.Ladder), Test(v.Test), Timeline(v.Timeline), Anatomy("step", []view.Anatomy{v.Step}), Anatomy("batch", v.Batches), Fixes(v)}
	out := all[:0]
	for _, f := range all {
		if !f.Empty() {
			out = append(out, f)
		}
	}
	return out
}

// Empty reports whether there is nothing to draw.
func (f Figure) Empty() bool { return f.draw == nil }

// on draws the figure on a canvas of its size.
func (f Figure) on(c vg.CanvasSizer, background bool) {
	p := &pen{Canvas: draw.New(c)}
	if background {
		p.box(paper, 0, 0, f.Width, f.Height)
	}
	f.draw(p)
}

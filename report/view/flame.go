package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stage"
)

// Flame is a flame graph, root at the top: what called what, as wide as the time it took.
type Flame struct {
	Rows  int
	Boxes []FlameBox
	Notes []string
}

// FlameBox is one function on one path, or the waiting in it.
type FlameBox struct {
	X, Width float64 // of the batch's time, 0–1
	Row      int     // from 0, the root
	Label    string  // the function alone
	Title    string  // all there is to say
	Class    string  // id of the kind of work, for its colour
}

const (
	flameRows   = 24
	flameLeast  = 0.004 // of the width: a narrower box cannot be seen
	flameBoxes  = 600
	flameSpaces = "blocked" // id of waiting
)

// stageIDs are the ids that colours go by.
var stageIDs = map[stage.Class]string{
	stage.Read: "read", stage.Decode: "decode", stage.Join: "join", stage.Tokenise: "tokenise", stage.Transform: "transform", stage.Augment: "augment",
	stage.Collate: "collate", stage.Other: "other",
}

type flameDrawer struct {
	Flame
	whole   float64
	classes stage.Classifier
	hidden  float64 // seconds in boxes that were too narrow or too deep
}

func flame(l analysis.Loader) Flame {
	if l.Stacks == nil || len(l.Stages) == 0 {
		return Flame{}
	}
	d := flameDrawer{whole: l.Stacks.Root.Total()}
	if !(d.whole > 0) || !finite(d.whole) {
		return Flame{}
	}
	d.add(FlameBox{Width: 1, Label: "a batch", Title: "all looks: " + count(l.Sampling.Samples), Class: "other"})
	d.draw(&l.Stacks.Root, nil, 0, 1)
	if d.hidden > 0.01*d.whole {
		d.Notes = append(d.Notes, percent(d.hidden/d.whole)+" of the time is in boxes too narrow or too deep to be drawn.")
	}
	return d.Flame
}

func (d *flameDrawer) add(b FlameBox) {
	d.Boxes = append(d.Boxes, b)
	d.Rows = max(d.Rows, b.Row+1)
}

// draw places what a node called below it, from left to right, then its own waiting; its own computing stays empty.
func (d *flameDrawer) draw(n *stage.Node, path []string, x float64, row int) {
	for _, b := range n.Below {
		width := b.Total() / d.whole
		if !(width >= flameLeast) || row >= flameRows || len(d.Boxes) >= flameBoxes {
			d.hidden += b.Total()
			continue
		}
		below := append(path[:len(path):len(path)], b.Function)
		on, _, _ := d.classes.Of(below)
		d.add(FlameBox{X: x, Width: width, Row: row, Label: lastName(b.Function), Class: stageIDs[on],
			Title: Clean(b.Function, proseRunes) + ": " + percent(width) + " of a batch's time, " + string(on)})
		d.draw(b, below, x, row+1)
		x += width
	}
	if width := n.Off / d.whole; width >= flameLeast && row < flameRows && len(d.Boxes) < flameBoxes {
		where := "the loop that builds"
		if n.Function != "" {
			where = Clean(n.Function, proseRunes)
		}
		d.add(FlameBox{X: x, Width: width, Row: row, Label: "waiting", Class: flameSpaces, Title: "waiting in " + where + ": " + percent(width) + " of a batch's time"})
	}
}

// lastName is a function without its file and class, unless that is all that tells it: Photos.__getitem__, Resize.forward.
func lastName(s string) string {
	_, name, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return cleanName(s)
	}
	parts := strings.Split(name, ".")
	last := parts[len(parts)-1]
	if len(parts) > 1 && (strings.HasPrefix(last, "__") || strings.HasPrefix(last, "<") || last == "forward" || last == "apply") {
		last = parts[len(parts)-2] + "." + last
	}
	return cleanName(last)
}

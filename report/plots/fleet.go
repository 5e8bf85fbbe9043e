package plots

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/datawait/datawait/report/view"
)

// mostBars is how many jobs a picture holds; the table beside it has more.
const mostBars = 12

// Fleet draws a bar for each of the first jobs, to one scale: the GPU-hours it was allocated, cut into where they went.
func Fleet(v view.Fleet) Figure {
	var shown []view.Anatomy
	longest := 0.0
	for _, a := range v.Bars {
		if len(shown) < mostBars && a.Whole.Known && a.Whole.Value > 0 && len(a.Parts) > 0 {
			shown = append(shown, a)
			longest = max(longest, a.Whole.Value)
		}
	}
	if len(shown) == 0 {
		return Figure{}
	}
	const width, row = 760, 26
	legend := legendOf(shown, width)
	key := vg.Length(12 + keyLine*(legend[len(legend)-1].line+1))
	height := vg.Length(len(shown)*row) + key
	return Figure{Name: "jobs", Alt: fleetAlt(shown), Width: width, Height: height, draw: func(p *pen) {
		for i, a := range shown {
			p.job(a, height-vg.Length(i*row)-row/2, width, longest)
		}
		for _, k := range legend {
			y := key - 18 - vg.Length(k.line*keyLine)
			p.box(useRole(k.id), k.x, y-5, k.x+10, y+5)
			p.text(left(small, ink), k.x+14, y, k.words)
		}
	}}
}

// useRoles colours the parts of allocated time: what is lost is orange or olive, work is blue.
var useRoles = map[string]role{"compute": working, "active": matrix, "waiting": waiting, "wait_bound": startOf, "idle": pausing, "other": held, "unknown": unclear}

func useRole(id string) role {
	if r, ok := useRoles[id]; ok {
		return r
	}
	return unclear
}

// job draws the name of a job, its bar, and how many GPU-hours it had.
func (p *pen) job(a view.Anatomy, y, width vg.Length, longest float64) {
	const name, value, half = 220, 96, 8
	p.text(left(small, ink), 0, y, fit(left(small, ink), a.Name, name-12))
	full := width - name - value
	x := vg.Length(name)
	for _, part := range a.Parts {
		w := full * vg.Length(between(part.Value/longest, 0, 1))
		p.box(useRole(part.ID), x, y-half, min(x+w, name+full), y+half)
		x += w
	}
	p.text(right(small, ink), width, y, fit(right(small, ink), a.Whole.Text, value-8))
}

// legendOf names the parts that occur, in the order in which they are drawn.
func legendOf(list []view.Anatomy, width vg.Length) []placed {
	var out []placed
	names := map[string]string{}
	x, line := vg.Length(0), 0
	for _, a := range list {
		for _, part := range a.Parts {
			names[part.ID] = part.Name
		}
	}
	for _, id := range view.FleetParts() {
		name, there := names[id]
		if !there {
			continue
		}
		w := 14 + widthOf(left(small, ink), name)
		if x > 0 && x+w > width {
			x, line = 0, line+1
		}
		out = append(out, placed{id, name, x, line})
		x += w + 16
	}
	return out
}

func fleetAlt(list []view.Anatomy) string {
	var out []string
	for _, a := range list {
		var parts []string
		for _, x := range a.Parts {
			parts = append(parts, x.Name+" "+x.Text)
		}
		out = append(out, a.Name+", "+a.Whole.Text+": "+strings.Join(parts, ", "))
	}
	return "Allocated GPU-hours by job. " + strings.Join(out, "; ") + "."
}

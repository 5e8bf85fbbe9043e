package plots

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/datawait/datawait/report/view"
)

var rungRoles = []role{allocated, held, resident, working, matrix}

// Ladder draws one bar per rung, from allocated down to tensor. A rung that is not known is words, no bar.
func Ladder(l view.Ladder) Figure {
	if l.Words != "" {
		return Figure{}
	}
	const width, row = 400, 30
	n := len(l.Rungs)
	return Figure{Name: "ladder", Alt: ladderAlt(l), Width: width, Height: vg.Length(n*row + 4), draw: func(p *pen) {
		for i, r := range l.Rungs {
			y := vg.Length((n-i)*row - row/2 + 2)
			p.rung(r, rungRoles[min(i, len(rungRoles)-1)], y, width)
		}
	}}
}

func (p *pen) rung(r view.Rung, color role, y, width vg.Length) {
	const name, value, half = 74, 46, 8
	p.text(left(normal, ink), 0, y, r.Name)
	if !r.Share.Known {
		p.text(left(small, muted), name, y, fit(left(small, muted), r.Share.Words(), width-name))
		return
	}
	full := width - name - value
	p.box(track, name, y-half, name+full, y+half)
	p.box(color, name, y-half, name+full*vg.Length(between(r.Share.Value, 0, 1)), y+half)
	p.text(bold(right(normal, ink)), width, y, r.Share.Text)
	p.rungNote(r.Note, color, name, name+full*vg.Length(between(r.Share.Value, 0, 1)), name+full, y)
}

// rungNote writes a note behind the end of a bar, or inside the bar where there is no room behind it.
func (p *pen) rungNote(note string, color role, begin, end, full, y vg.Length) {
	behind, inside := left(small, muted), right(small, paper)
	if color.name == resident.name {
		inside = right(small, ink)
	}
	switch w := widthOf(behind, note); {
	case note == "":
	case end+8+w <= full:
		p.text(behind, end+8, y, note)
	case begin+8+w <= end-8:
		p.text(inside, end-8, y, note)
	default:
		p.text(behind, end+8, y, fit(behind, note, full-end-8))
	}
}

func ladderAlt(l view.Ladder) string {
	parts := []string{"Ladder from allocated to working"}
	for _, r := range l.Rungs {
		parts = append(parts, r.Name+" "+r.Share.Words())
	}
	return strings.Join(parts, "; ") + "."
}

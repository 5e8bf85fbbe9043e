package terminal

import (
	"strconv"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// What fits on one screen; the other files have it all.
const (
	maxGPUs  = 8
	maxNotes = 4
)

// gpus writes what the ladder comes to, and each GPU's with the grade of every number.
func (p *page) gpus(g view.GPUs) {
	defer p.blank()
	p.wrap(p.paint.none, "  ", "  ", g.Hours)
	p.wrap(p.paint.none, "  ", "  ", g.Money)
	if n := len(g.Table.Rows); n > 0 {
		p.gpuTable(g.Table)
		if n > maxGPUs {
			p.line("  and " + strconv.Itoa(n-maxGPUs) + " more in the report")
		}
	}
	for i, s := range g.Notes {
		if i == maxNotes {
			p.line("  and " + strconv.Itoa(len(g.Notes)-maxNotes) + " more in the report")
			break
		}
		p.wrap(p.paint.none, "  ", "    ", s)
	}
}

func (p *page) gpuTable(t view.Table) {
	widths := make([]int, len(t.Columns))
	rows := [][]string{make([]string, len(t.Columns))}
	for i, c := range t.Columns {
		rows[0][i] = c.Head
	}
	for _, row := range t.Rows[:min(maxGPUs, len(t.Rows))] {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = cut(c.Text, maxCell)
		}
		rows = append(rows, cells)
	}
	for _, row := range rows {
		for i, s := range row {
			widths[i] = max(widths[i], columns(s))
		}
	}
	for n, row := range rows {
		line := "  "
		for i, s := range row {
			if t.Columns[i].Number {
				line += padLeft(s, widths[i]) + "  "
			} else {
				line += pad(s, widths[i]) + "  "
			}
		}
		line = strings.TrimRight(cut(line, p.width), " ")
		if n == 0 {
			line = p.paint.faint(line)
		}
		p.line(line)
	}
}

// maxCell is the widest a cell may be.
const maxCell = 24

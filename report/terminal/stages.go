package terminal

import (
	"github.com/datawait/datawait/report/view"
)

// maxStageRows is how many kinds of work fit on one screen; the other files have them all.
const maxStageRows = 5

// stages is where the time of the first loader's batch goes inside.
func (p *page) stages(all []view.Stages) {
	if len(all) == 0 || len(all[0].Table.Rows) == 0 {
		return
	}
	t := all[0].Table
	head := make([]string, len(t.Columns))
	rows := make([][]string, min(maxStageRows, len(t.Rows)))
	for i, c := range t.Columns {
		head[i] = c.Head
		width := columns(c.Head)
		for _, row := range t.Rows[:len(rows)] {
			width = max(width, columns(row[i].Text))
		}
		for n, row := range t.Rows[:len(rows)] {
			text := row[i].Text
			if c.Number {
				text = padLeft(text, width)
			}
			rows[n] = append(rows[n], text)
		}
		if c.Number {
			head[i] = padLeft(head[i], width)
		}
	}
	p.table(head, rows)
	p.blank()
}

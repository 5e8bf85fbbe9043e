package view

import (
	"slices"
	"strings"
)

// Table is rows and columns whose cells are ready to be shown.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]Cell
	Notes   []string // what a cell refers to
}

// Column is the head of a column.
type Column struct {
	Head   string
	Number bool // align at the right, so that decimals stand below each other
}

// Cell is one cell. Why holds the reason of a missing value, or the proof of one that is there.
type Cell struct {
	Text    string
	Why     string
	Missing bool
}

// maxRows is how many rows of a table are shown; the JSON report has them all.
const maxRows = 256

// tidy cuts a table to the rows that are shown, drops columns that are empty, and moves those that say the same in every row
// of several into a note.
func (t Table) tidy() Table {
	if n := len(t.Rows); n > maxRows {
		t.Rows = t.Rows[:maxRows]
		t.Notes = append(t.Notes, "The first "+count(maxRows)+" of "+count(n)+" rows; the JSON report has them all.")
	}
	if len(t.Rows) == 0 {
		return t
	}
	var same []string
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if text := t.Rows[0][i].Text; !t.Columns[i].Number && t.uniform(i) && (text == "" || len(t.Rows) > 1) {
			if text != "" {
				same = append([]string{t.Columns[i].Head + " " + text}, same...)
			}
			t.drop(i)
		}
	}
	if len(same) > 0 {
		t.Notes = append(t.Notes, "In every row: "+strings.Join(same, ", ")+".")
	}
	return t
}

func (t Table) uniform(column int) bool {
	for _, row := range t.Rows {
		if row[column].Text != t.Rows[0][column].Text {
			return false
		}
	}
	return true
}

func (t *Table) drop(column int) {
	t.Columns = slices.Delete(slices.Clone(t.Columns), column, column+1)
	for i := range t.Rows {
		t.Rows[i] = slices.Delete(t.Rows[i], column, column+1)
	}
}

func textCell(s string) Cell { return Cell{Text: s} }

func cell(q Quantity) Cell {
	if !q.Known {
		return Cell{Text: q.Text, Why: q.Why, Missing: true}
	}
	return Cell{Text: q.Text, Why: q.Proof}
}

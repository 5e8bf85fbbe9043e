package view

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

// Cell is one cell; Why is shown where a value is missing.
type Cell struct {
	Text string
	Why  string
}

func textCell(s string) Cell { return Cell{Text: s} }

func cell(q Quantity) Cell {
	if !q.Known {
		return Cell{Text: q.Text, Why: q.Why}
	}
	return Cell{Text: q.Text, Why: q.Proof}
}

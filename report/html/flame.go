package html

import (
	"strconv"
	"unicode/utf8"

	"github.com/datawait/datawait/report/view"
)

// A flame graph is drawn 1000 units wide, in rows.
const (
	flameWidth = 1000
	flameRow   = 18
	flameGlyph = 6.8 // the widest that a character of its type is on average
)

// at turns a share of the width into units.
func at(share float64) string { return strconv.FormatFloat(share*flameWidth, 'f', 1, 64) }

// inset is where the label of a box begins.
func inset(share float64) string { return at(share + 4.0/flameWidth) }

// base is the line that the label of a row stands on.
func base(row int) int { return row*flameRow + 13 }

// rows is the height of so many rows.
func rows(n int) int { return n * flameRow }

// fit is as much of a label as its box has room for.
func fit(b view.FlameBox) string {
	room := int((b.Width*flameWidth - 6) / flameGlyph)
	switch n := utf8.RuneCountInString(b.Label); {
	case n <= room:
		return b.Label
	case room < 3:
		return ""
	}
	return string([]rune(b.Label)[:room-1]) + "…"
}

package terminal

import (
	"math"
	"strings"
	"unicode"

	"github.com/datawait/datawait/report/view"
)

func isMark(r rune) bool { return unicode.Is(unicode.M, r) }

// barCells is the length of a full bar.
const barCells = 40

func (p *page) ladder(l view.Ladder) {
	defer p.blank()
	if l.Words != "" {
		p.wrap(p.paint.none, "  ", "  ", l.Words)
		return
	}
	name, value := 0, 0
	for _, r := range l.Rungs {
		name = max(name, columns(r.Name))
		if r.Share.Known {
			value = max(value, columns(r.Share.Text))
		}
	}
	for _, r := range l.Rungs {
		head := "  " + pad(r.Name, name) + "  "
		if !r.Share.Known {
			p.wrap(p.paint.none, head, strings.Repeat(" ", columns(head)), r.Share.Words())
			continue
		}
		s := head + pad(bar(r.Share.Value, barCells), barCells) + " " + padLeft(r.Share.Text, value)
		if r.Note != "" {
			s += "   (" + r.Note + ")"
		}
		p.line(s)
	}
}

// bar draws a share in eighths of a cell. More than nothing is at least one eighth.
func bar(share float64, cells int) string {
	share = math.Max(0, math.Min(1, share))
	eighths := int(math.Round(share * float64(cells) * 8))
	if share > 0 && eighths == 0 {
		eighths = 1
	}
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}

// maxFixes is how many fixes fit on one screen; the other files have them all.
const maxFixes = 5

func (p *page) fixes(v view.View) {
	defer p.blank()
	if v.Fixes.Words != "" {
		p.wrap(p.paint.none, "Fixes: ", "       ", v.Fixes.Words)
	} else {
		p.fixTable(v.Fixes)
		p.blank()
	}
	var may []string
	for _, u := range v.Unpriced {
		may = append(may, u.Title)
	}
	p.wrap(p.paint.none, "Will not help: ", hang, strings.Join(v.NoHelpIn, " · "))
	p.wrap(p.paint.none, "May help, by how much this run cannot tell: ", hang, strings.Join(may, " · "))
}

func (p *page) fixTable(f view.Fixes) {
	rows := [][]string{}
	for i, x := range f.Rows {
		if i == maxFixes {
			break
		}
		rows = append(rows, []string{x.Position, x.Title, stepChange(x), x.Wait.Text, x.Effort})
	}
	p.table([]string{"", "Fixes, best first", stepHead(f), "wait", "effort"}, rows)
	p.wrap(p.paint.faint, "     ", "     ", strings.Join(f.Notes, " · "))
	p.wrap(p.paint.none, "Recipes: ", hang, view.Recipes(f.Rows[:min(maxFixes, len(f.Rows))]))
	p.wrap(p.paint.none, "One after the other: ", hang, f.Plan)
}

// hang is where a list goes on below the words that lead it.
const hang = "     "

func stepHead(f view.Fixes) string {
	if f.Grade == "" {
		return "step, " + f.Unit
	}
	return "step, " + f.Unit + " (grade " + f.Grade + ")"
}

func stepChange(x view.Fix) string {
	if !x.To.Known {
		return x.To.Words()
	}
	s := x.From.Number + " → " + x.To.Number
	if x.To.Span != "" {
		s += " (" + x.To.Span + ")"
	}
	return s + x.Mark
}

// table writes rows under heads. Columns are as wide as their widest cell; the second and the last wrap.
func (p *page) table(head []string, rows [][]string) {
	const titleMax = 38
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], columns(c))
		}
	}
	widths[1] = min(widths[1], titleMax)
	used := 2
	for _, w := range widths[:len(widths)-1] {
		used += w + 2
	}
	widths[len(widths)-1] = max(12, p.width-used)
	p.row(widths, head, p.paint.faint)
	for _, row := range rows {
		p.row(widths, row, p.paint.none)
	}
}

func (p *page) row(widths []int, cells []string, paint func(string) string) {
	lines := 1
	broken := make([][]string, len(cells))
	for i, c := range cells {
		broken[i] = breakLines(c, widths[i], widths[i])
		lines = max(lines, len(broken[i]))
	}
	for n := range lines {
		s := "  "
		for i := range cells {
			c := ""
			if n < len(broken[i]) {
				c = broken[i][n]
			}
			s += pad(c, widths[i]) + "  "
		}
		p.line(paint(strings.TrimRight(s, " ")))
	}
}

package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Layout says how Write lays a document out.
type Layout struct {
	Color bool // as an addition only: nothing depends on it
	Width int  // columns; 0 = 110
}

// marks begin a line, one column wide; the word beside them says the same.
var marks = map[State]struct{ sign, color string }{
	Good:    {"+", "\x1b[32m"},
	Limited: {"~", "\x1b[33m"},
	Missing: {"-", "\x1b[31m"},
}

// Write lays the findings out on one screen.
func (d Document) Write(w io.Writer, l Layout) error {
	var b strings.Builder
	fmt.Fprintf(&b, "datawait doctor · %s · %s · datawait %s\n", d.Machine, d.Platform, d.Datawait)
	width := l.Width
	if width <= 0 || width > 110 {
		width = 110
	}
	for _, subject := range []Subject{GPUs, Job, Machine, Datawait} {
		b.WriteString("\n" + strings.ToUpper(string(subject[:1])) + string(subject[1:]) + "\n")
		for _, f := range d.Findings {
			if f.Subject == subject {
				f.write(&b, l.Color, width)
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", d.summary())
	_, err := io.WriteString(w, b.String())
	return err
}

func (f Finding) write(b *strings.Builder, color bool, width int) {
	mark := marks[f.State]
	sign := mark.sign
	if color {
		sign = mark.color + sign + "\x1b[0m"
	}
	grade := f.Grade
	if grade == "" {
		grade = " "
	}
	const indent = 7
	fmt.Fprintf(b, "  %s %s  ", sign, grade)
	b.WriteString(fold(f.Says, width-indent, indent))
	if f.Raise != "" {
		fmt.Fprintf(b, "%*s→ ", indent, "")
		b.WriteString(fold(f.Raise, width-indent-2, indent+2))
	}
}

// fold breaks a text at spaces; the first line begins where the cursor is.
func fold(text string, width, indent int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}

// summary is the last line: what a report from here would have.
func (d Document) summary() string {
	count := map[State]int{}
	for _, f := range d.Findings {
		count[f.State]++
	}
	return fmt.Sprintf("+ is measured (%d), ~ with a gap (%d), - not at all (%d). A is the best evidence, C the weakest. → says what raises it.",
		count[Good], count[Limited], count[Missing])
}

package terminal

import (
	"strings"

	"golang.org/x/text/width"
)

const nbsp = "\u00a0"

// page collects lines.
type page struct {
	strings.Builder
	width int
	paint painter
}

// painter puts ANSI colours around text, or does nothing.
type painter struct{ none, bold, warn, faint func(string) string }

func paint(color bool) painter {
	plain := func(s string) string { return s }
	if !color {
		return painter{plain, plain, plain, plain}
	}
	sgr := func(code string) func(string) string {
		return func(s string) string { return "\x1b[" + code + "m" + s + "\x1b[0m" }
	}
	return painter{none: plain, bold: sgr("1"), warn: sgr("33"), faint: sgr("2")}
}

func (p *page) line(s string) {
	p.WriteString(strings.TrimRight(s, " "))
	p.WriteByte('\n')
}

// blank ends a paragraph; two in a row are one.
func (p *page) blank() {
	if s := p.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		p.WriteByte('\n')
	}
}

// wrap writes text broken at spaces, the first line after first and the others after rest. Empty text writes nothing.
func (p *page) wrap(paint func(string) string, first, rest, text string) {
	if text == "" {
		return
	}
	lines := breakLines(text, p.width-columns(first), p.width-columns(rest))
	for i, s := range lines {
		lead := rest
		if i == 0 {
			lead = first
		}
		p.line(lead + paint(s))
	}
}

// breakLines breaks text at spaces. A word that is wider than a line is cut, so that no line is ever too wide.
func breakLines(text string, first, rest int) []string {
	var lines []string
	line, room := "", max(1, first)
	flush := func() {
		lines = append(lines, line)
		line, room = "", max(1, rest)
	}
	for _, word := range strings.Fields(protect(text)) {
		word = strings.ReplaceAll(word, guard, nbsp)
		if line != "" && columns(line)+1+columns(word) > room {
			flush()
		}
		for columns(word) > room {
			head := cut(word, room)
			line, word = head, word[len(head):]
			flush()
		}
		switch {
		case line == "":
			line = word
		case word != "":
			line += " " + word
		}
	}
	if line != "" {
		flush()
	}
	return lines
}

// guard stands for a no-break space while fields are split, since strings.Fields would split there.
const guard = "\ue000"

func protect(s string) string { return strings.ReplaceAll(s, nbsp, guard) }

// cut returns the longest head of s that is at most n columns wide, and at least one rune.
func cut(s string, n int) string {
	used := 0
	for i, r := range s {
		w := runeColumns(r)
		if i > 0 && used+w > n {
			return s[:i]
		}
		used += w
	}
	return s
}

// columns is how many cells a text takes on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	if isMark(r) {
		return 0
	}
	return 1
}

// pad fills s up to n columns at the right.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-columns(s))) }

// padLeft fills s up to n columns at the left.
func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-columns(s))) + s }

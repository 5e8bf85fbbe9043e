package view

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much of a text from outside is shown. The JSON report keeps it whole.
const (
	nameRunes  = 60   // a job, device, host or loader name
	proseRunes = 400  // a title, a reason, a warning
	shellRunes = 2000 // a command line
)

// maxMarks is how many combining marks in a row are kept: more than any living script uses, fewer than it takes to paint over other lines.
const maxMarks = 4

// Clean makes text from outside fit to be shown: bytes that are no UTF-8 become U+FFFD; white space of every kind becomes
// one plain space; control characters, invisible ones and those that turn the direction of writing become a visible escape
// such as \u202e; and what is longer than max runes loses its middle.
func Clean(s string, max int) string {
	var b strings.Builder
	marks, space := 0, false
	for _, r := range clip(s, max) {
		if unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) {
			space = b.Len() > 0
			continue
		}
		if marks = countMark(r, marks); marks > maxMarks {
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteString(visible(r))
	}
	return b.String()
}

func countMark(r rune, marks int) int {
	if unicode.Is(unicode.M, r) {
		return marks + 1
	}
	return 0
}

// visible returns r, or an escape where printing r would show nothing or change what stands around it.
func visible(r rune) string {
	switch {
	case strconv.IsPrint(r):
		return string(r)
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// clip keeps the beginning and the end of a text, which tell names apart better than the beginning alone.
func clip(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	r := []rune(s)
	tail := max / 3
	return string(r[:max-tail-1]) + "…" + string(r[len(r)-tail:])
}

func cleanName(s string) string { return Clean(s, nameRunes) }

func cleanProse(s string) string { return tie(Clean(s, proseRunes)) }

// measures finds a number and its unit inside a sentence.
var measures = regexp.MustCompile(`(\d) (%|[nµm]?s|min|h|[KMGT]?i?B|cores?|workers?|ranks?|GPUs?|steps?)\b`)

// tie joins the numbers of a sentence to their units, so that no line breaks between them.
func tie(s string) string {
	s = strings.ReplaceAll(s, " %", nbsp+"%")
	return measures.ReplaceAllString(s, "$1"+nbsp+"$2")
}

// sentence cleans prose and makes it end as a sentence does.
func sentence(s string) string {
	s = cleanProse(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// clause cleans prose and takes the full stop off, for use inside another sentence.
func clause(s string) string { return strings.TrimRight(cleanProse(s), ". ") }

// upper makes the first letter a capital.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || r == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

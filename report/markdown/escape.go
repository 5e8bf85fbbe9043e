package markdown

import (
	"strings"
	"unicode"
)

// joiner is an invisible character that keeps what stands on its two sides from being read as one token. GitHub looks for
// mentions (@name) and references (#1) after Markdown is parsed, where a backslash no longer protects.
const joiner = "\u2060"

// prose escapes text so that it stays text: no emphasis, link, picture, code, HTML, mention, reference or bare address.
// A line of prose never begins with it, so the marks of lists and headings need no care.
func prose(s string) string {
	s = strings.NewReplacer("://", ":"+joiner+"//", "www.", "www"+joiner+".").Replace(s)
	r := []rune(s)
	var b strings.Builder
	for i, c := range r {
		switch c {
		case '\\', '`', '*', '[', ']', '|', '~', '!', '$', '^', '{', '}':
			b.WriteByte('\\')
			b.WriteRune(c)
		case '_':
			if !inWord(r, i) {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '@', '#':
			b.WriteRune(c)
			b.WriteString(joiner)
		case '\n', '\r':
			b.WriteByte(' ')
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// inWord reports whether an underscore stands between letters or digits, where it cannot begin emphasis: pin_memory.
func inWord(r []rune, i int) bool {
	word := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	return i > 0 && i+1 < len(r) && word(r[i-1]) && word(r[i+1])
}

// code sets a name as code, in which nothing is markup. The fence is longer than any run of backquotes inside, and a bar is
// replaced, since it would end a cell even there.
func code(s string) string {
	s = strings.NewReplacer("|", "¦", "\n", " ", "\r", " ").Replace(s)
	longest, run := 0, 0
	for _, c := range s {
		if c == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 || s == "" {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

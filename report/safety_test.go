package report

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/text/width"

	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/terminal"
)

// The screen holds no control character and no text that runs backwards, and no line is wider than 110 columns.
func TestScreenIsSafe(t *testing.T) {
	for _, c := range situations() {
		for _, columns := range []int{0, 60, 40} {
			checkScreen(t, c.name, columns, func(w io.Writer, o terminal.Options) error { return Terminal(w, c.result, o) })
		}
	}
	for _, c := range comparisons() {
		for _, columns := range []int{0, 60, 40} {
			checkScreen(t, c.name, columns, func(w io.Writer, o terminal.Options) error { return CompareTerminal(w, c.comparison, o) })
		}
	}
}

func checkScreen(t *testing.T, name string, columns int, write func(io.Writer, terminal.Options) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, terminal.Options{Width: columns, Files: []string{"report.html"}, Dir: "\x1b[31m" + strings.Repeat("d", 300)}); err != nil {
		t.Fatal(err)
	}
	limit := terminal.Width
	for _, line := range strings.Split(b.String(), "\n") {
		for _, r := range line {
			if !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%s: %q in %q", name, r, line)
			}
		}
		if n := cells(line); n > limit {
			t.Errorf("%s: %d columns: %q", name, n, line)
		}
	}
}

func cells(s string) int {
	n := 0
	for _, r := range s {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.M, r):
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Colour adds escapes of its own and nothing else.
func TestColourOnlyAdds(t *testing.T) {
	var plain, colour bytes.Buffer
	for _, o := range []struct {
		to    *bytes.Buffer
		color bool
	}{{&plain, false}, {&colour, true}} {
		if err := Terminal(o.to, sample.Hostile(), terminal.Options{Color: o.color}); err != nil {
			t.Fatal(err)
		}
	}
	stripped := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(colour.String(), "")
	if stripped != plain.String() {
		t.Error("without its colours the coloured screen is not the plain one")
	}
}

var (
	tag       = regexp.MustCompile(`<(/?)([a-zA-Z!][a-zA-Z0-9]*)([^>]*)>`)
	attribute = regexp.MustCompile(`([a-zA-Z:-]+)\s*=\s*("[^"]*"|'[^']*')`)
)

// A page has the tags and attributes of its template and no others, and names no address but its own anchors.
func TestPageIsSafe(t *testing.T) {
	for _, c := range situations() {
		checkPage(t, c.name, string(c.files["report.html"]))
	}
	for _, c := range comparisons() {
		checkPage(t, c.name, string(c.files["compare.html"]))
	}
}

func checkPage(t *testing.T, name, page string) {
	t.Helper()
	allowedTags := words("!DOCTYPE html head meta title style body header p b bdi span h1 h2 h3 main div section figure figcaption svg g path text rect ol li br a ul dl dt dd small code pre article table caption thead tbody tr th td")
	allowedAttributes := words("lang charset http-equiv content name class role href title scope colspan id viewBox width height aria-label aria-hidden font-family style transform d x y textLength lengthAdjust preserveAspectRatio")
	for _, m := range tag.FindAllStringSubmatch(page, -1) {
		if !allowedTags[m[2]] {
			t.Errorf("%s: tag %s", name, m[0])
		}
		for _, a := range attribute.FindAllStringSubmatch(m[3], -1) {
			value := strings.Trim(a[2], `"'`)
			switch {
			case m[2] == "!DOCTYPE":
			case !allowedAttributes[a[1]]:
				t.Errorf("%s: attribute in %s", name, m[0])
			case a[1] == "href" && !strings.HasPrefix(value, "#"):
				t.Errorf("%s: an address in %s", name, m[0])
			case a[1] == "style" && strings.Contains(value, "url("):
				t.Errorf("%s: an address in %s", name, m[0])
			}
		}
	}
	if strings.Contains(page, "@import") || strings.Contains(page, "url(") {
		t.Errorf("%s: the style sheet fetches something", name)
	}
	checkText(t, name, page)
}

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

func checkText(t *testing.T, name, s string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && r != '\t' && r != '\u2060' && !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%s: character %U", name, r)
			return
		}
	}
	if i := strings.Index(s, strings.Repeat("Ж", 500)); i >= 0 {
		t.Errorf("%s: a very long name is shown whole", name)
	}
}

// A ticket, read as GitHub reads it, has one heading, one picture of ours, tables of six columns, and no link or HTML.
func TestTicketIsSafe(t *testing.T) {
	for _, c := range situations() {
		checkText(t, c.name, string(c.files["report.md"]))
		checkTicket(t, c.name, c.files["report.md"])
	}
	for _, c := range comparisons() {
		checkText(t, c.name, string(c.files["compare.md"]))
		checkTicket(t, c.name, c.files["compare.md"])
	}
}

func checkTicket(t *testing.T, name string, source []byte) {
	t.Helper()
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	headings := 0
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			headings++
		case *ast.Link, *ast.AutoLink, *ast.RawHTML, *ast.HTMLBlock, *ast.CodeBlock, *ast.FencedCodeBlock, *east.Strikethrough:
			t.Errorf("%s: %s in the ticket", name, n.Kind())
		case *ast.Image:
			if d := string(n.Destination); !strings.HasPrefix(d, "report-") && !strings.HasPrefix(d, "compare-") && !strings.HasPrefix(d, "fleet-") {
				t.Errorf("%s: a picture of %s", name, d)
			}
		case *east.TableRow:
			if n.ChildCount() != 6 {
				t.Errorf("%s: a row of %d cells", name, n.ChildCount())
			}
		}
		return ast.WalkContinue, nil
	})
	if headings != 1 {
		t.Errorf("%s: %d headings", name, headings)
	}
}

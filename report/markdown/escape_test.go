package markdown

import (
	"html"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/datawait/datawait/report/view"
)

var github = goldmark.New(goldmark.WithExtensions(extension.GFM))

// plainText parses a line of a list and returns its text; ok is false if it holds anything but text.
func plainText(line string) (s string, ok bool) {
	source := []byte("- point: " + line + "\n")
	doc := github.Parser().Parse(text.NewReader(source))
	ok = true
	var b strings.Builder
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Document, *ast.List, *ast.ListItem, *ast.TextBlock:
		case *ast.Text:
			b.Write(n.Segment.Value(source))
		default:
			ok = false
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimPrefix(strings.TrimPrefix(b.String(), "point:"), " "), ok
}

// unescaped undoes what a reader of Markdown undoes after finding the text: backslashes and entities; and drops the joiners.
func unescaped(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i := 0; i < len(r); i++ {
		if r[i] == '\\' && i+1 < len(r) && strings.ContainsRune("\\`*[]|~!$^{}_", r[i+1]) {
			i++
		}
		b.WriteRune(r[i])
	}
	return strings.ReplaceAll(html.UnescapeString(b.String()), joiner, "")
}

// Whatever text says, it stays text, and a reader sees all of it.
func FuzzProse(f *testing.F) {
	for _, s := range []string{
		"num_workers=2 *bold* _em_ __x__", "[a](b) ![i](u) <b>", "`code` ``", "https://evil.example www.evil.example a@b.example", "a | b", "~~gone~~ $x$", `\*`, "&lt; &amp; &#64;",
		"@everyone fixes #1", "<!-- x -->", "http:/x :// ://www.", "[x]: y", "[ ] task",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = view.Clean(s, 200)
		got, ok := plainText(prose(s))
		if !ok {
			t.Errorf("%q became more than text: %q", s, prose(s))
		}
		if unescaped(got) != s {
			t.Errorf("%q reads %q", s, unescaped(got))
		}
	})
}

// A name set as code is code and nothing else, whatever backquotes it has.
func TestCode(t *testing.T) {
	for _, s := range []string{"train.py", "`", "a``b", "``` x", "x | y", "<b>", "@everyone"} {
		source := []byte(code(s))
		doc := github.Parser().Parse(text.NewReader(source))
		p := doc.FirstChild()
		if p == nil || p.ChildCount() != 1 || p.FirstChild().Kind() != ast.KindCodeSpan {
			t.Errorf("code(%q) = %s is no code span alone", s, source)
		}
	}
}

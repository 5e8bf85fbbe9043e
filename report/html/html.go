// Package html lays a report out as one self-contained page: no script, no font, no address outside itself.
//
// The first screen of a laptop holds the verdict, the ladder, the cached-data test and the three best fixes; the evidence
// follows. The page reads in light and dark, on paper, and without seeing its pictures. It decides no word and no number;
// package view does. Everything from the view passes html/template's escaping, and the pictures are made here from numbers.
package html

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/datawait/datawait/report/plots"
	"github.com/datawait/datawait/report/view"
)

//go:embed page.html compare.html fleet.html style.css
var files embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"rest": func(list []view.Fix, n int) int { return max(0, len(list)-n) }, "top": top, "marked": marked, "top2": func(f []view.Finding) []view.Finding { return f[:min(2, len(f))] }, "term": term, "id": termID, "lines": lines, "upper": upper,
	"at": at, "inset": inset, "fit": fit, "rows": rows, "base": base,
}).ParseFS(files, "page.html"))

// content is what the template sees: the view, and its pictures.
type content struct {
	view.View
	Style                                                      template.CSS
	Ladder, Test, Legs, Timeline, StepBar, BatchBars, FixChart template.HTML
}

// Write lays v out on w.
func Write(w io.Writer, v view.View) error {
	c := content{View: v, Style: style()}
	for _, f := range []struct {
		into   *template.HTML
		figure plots.Figure
	}{
		{&c.Ladder, plots.Ladder(v.Ladder)}, {&c.Test, plots.Test(v.Test)}, {&c.Legs, plots.Legs(v.Test)}, {&c.Timeline, plots.Timeline(v.Timeline)},
		{&c.StepBar, plots.Anatomy("step", []view.Anatomy{v.Step})}, {&c.BatchBars, plots.Anatomy("batch", v.Batches)}, {&c.FixChart, plots.Fixes(v)},
	} {
		if f.figure.Empty() {
			continue
		}
		svg, err := f.figure.SVG()
		if err != nil {
			return err
		}
		*f.into = template.HTML(svg) // built from numbers and escaped text by package plots
	}
	if err := page.Execute(w, c); err != nil {
		return fmt.Errorf("laying out the page: %w", err)
	}
	return nil
}

// style is the style sheet with the colours of the pictures, in light and in dark.
func style() template.CSS {
	css, err := files.ReadFile("style.css")
	if err != nil {
		panic(err) // embedded: it is there or the program does not build
	}
	light, dark := plots.Variables()
	return template.CSS(strings.NewReplacer("/*light*/", light, "/*dark*/", dark, "/*parts*/", plots.Classes()).Replace(string(css)))
}

func top(list []view.Fix, n int) []view.Fix { return list[:min(n, len(list))] }

// marked reports whether a fix shown here bears the mark that a note explains.
func marked(list []view.Fix) bool {
	return slices.ContainsFunc(list, func(f view.Fix) bool { return f.Mark != "" })
}

// lines joins shell commands, one a line.
func lines(list []string) string { return strings.Join(list, "\n") }

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// term marks a word that the page explains: at the pointer, and in the list at its end.
func term(v []view.Term, word string) (template.HTML, error) {
	for _, t := range v {
		if t.Word == word {
			return template.HTML(fmt.Sprintf(`<a class="term" href="#%s" title="%s">%s</a>`, termID(word), template.HTMLEscapeString(t.Meaning), template.HTMLEscapeString(word))), nil
		}
	}
	return "", fmt.Errorf("the report does not explain %q", word)
}

func termID(word string) string {
	return "term-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(word))
}

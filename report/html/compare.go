package html

import (
	"fmt"
	"html/template"
	"io"

	"github.com/datawait/datawait/report/plots"
	"github.com/datawait/datawait/report/view"
)

var comparePage = template.Must(template.New("compare.html").Funcs(template.FuncMap{
	"term": term, "id": termID, "upper": upper, "one": func(g view.RowGroup) []view.RowGroup { return []view.RowGroup{g} },
}).ParseFS(files, "compare.html"))

// compareContent is what the template of a comparison sees.
type compareContent struct {
	view.Comparison
	Style               template.CSS
	StepBars, CheckBars template.HTML
}

// WriteComparison lays two runs side by side out on w.
func WriteComparison(w io.Writer, v view.Comparison) error {
	c := compareContent{Comparison: v, Style: style()}
	for _, f := range []struct {
		into   *template.HTML
		figure plots.Figure
	}{{&c.StepBars, plots.Steps(v)}, {&c.CheckBars, plots.Checks(v)}} {
		if f.figure.Empty() {
			continue
		}
		svg, err := f.figure.SVG()
		if err != nil {
			return err
		}
		*f.into = template.HTML(svg) // built from numbers and escaped text by package plots
	}
	if err := comparePage.Execute(w, c); err != nil {
		return fmt.Errorf("laying out the page: %w", err)
	}
	return nil
}

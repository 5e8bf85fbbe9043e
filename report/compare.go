package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/report/html"
	"github.com/datawait/datawait/report/json"
	"github.com/datawait/datawait/report/markdown"
	"github.com/datawait/datawait/report/plots"
	"github.com/datawait/datawait/report/terminal"
	"github.com/datawait/datawait/report/view"
)

// ComparisonFormats returns the forms that a comparison has as files.
func ComparisonFormats() []Format { return []Format{HTML, Markdown, JSON} }

// RenderComparison makes the files of two runs side by side, name to content; a form that fails does not keep the others from being made.
func RenderComparison(c *compare.Comparison, formats []Format) (map[string][]byte, error) {
	v := view.NewComparison(c)
	files := map[string][]byte{}
	var failed []error
	for _, f := range formats {
		if err := renderComparison(files, f, c, v); err != nil {
			failed = append(failed, fmt.Errorf("rendering %s: %w", f, err))
		}
	}
	return files, errors.Join(failed...)
}

func renderComparison(files map[string][]byte, f Format, c *compare.Comparison, v view.Comparison) error {
	switch f {
	case HTML:
		return keep(files, "compare.html", func(w io.Writer) error { return html.WriteComparison(w, v) })
	case Markdown:
		return compareTicket(files, v)
	case JSON:
		b, err := json.MarshalComparison(c)
		if b != nil {
			files["compare.json"] = b
		}
		return err
	}
	return fmt.Errorf("a comparison has no form %q", f)
}

// compareTicket makes the Markdown and the one picture it shows: the steps of both runs, where they are comparable.
func compareTicket(files map[string][]byte, v view.Comparison) error {
	o, err := pictured(files, "compare", plots.Steps(v))
	if err != nil {
		return err
	}
	return keep(files, "compare.md", func(w io.Writer) error { return markdown.WriteComparison(w, v, o) })
}

// CompareTerminal writes the one screen of a comparison to w.
func CompareTerminal(w io.Writer, c *compare.Comparison, o terminal.Options) error {
	return terminal.WriteComparison(w, view.NewComparison(c), o)
}

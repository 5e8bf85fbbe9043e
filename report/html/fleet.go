package html

import (
	"fmt"
	"html/template"
	"io"

	"github.com/datawait/datawait/report/plots"
	"github.com/datawait/datawait/report/view"
)

var fleetPage = template.Must(template.New("fleet.html").Funcs(template.FuncMap{"term": term, "id": termID, "upper": upper}).ParseFS(files, "fleet.html"))

// fleetContent is what the template of a fleet sees.
type fleetContent struct {
	view.Fleet
	Style template.CSS
	Bars  template.HTML
}

// WriteFleet lays a fleet out on w.
func WriteFleet(w io.Writer, v view.Fleet) error {
	c := fleetContent{Fleet: v, Style: style()}
	if f := plots.Fleet(v); !f.Empty() {
		svg, err := f.SVG()
		if err != nil {
			return err
		}
		c.Bars = template.HTML(svg) // built from numbers and escaped text by package plots
	}
	if err := fleetPage.Execute(w, c); err != nil {
		return fmt.Errorf("laying out the page: %w", err)
	}
	return nil
}

package report

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/report/html"
	"github.com/datawait/datawait/report/json"
	"github.com/datawait/datawait/report/markdown"
	"github.com/datawait/datawait/report/plots"
	"github.com/datawait/datawait/report/terminal"
	"github.com/datawait/datawait/report/view"
)

// FleetFormats returns the forms that a fleet has as files.
func FleetFormats() []Format { return []Format{HTML, Markdown, JSON} }

// RenderFleet makes the files of a fleet, name to content; a form that fails does not keep the others from being made.
func RenderFleet(f *fleet.Fleet, formats []Format) (map[string][]byte, error) {
	v := view.NewFleet(f)
	files := map[string][]byte{}
	var failed []error
	for _, form := range formats {
		if err := renderFleet(files, form, f, v); err != nil {
			failed = append(failed, fmt.Errorf("rendering %s: %w", form, err))
		}
	}
	return files, errors.Join(failed...)
}

func renderFleet(files map[string][]byte, form Format, f *fleet.Fleet, v view.Fleet) error {
	switch {
	case !slices.Contains(FleetFormats(), form):
		return fmt.Errorf("a fleet has no form %q", form)
	case form == HTML:
		return keep(files, "fleet.html", func(w io.Writer) error { return html.WriteFleet(w, v) })
	case form == Markdown:
		return fleetTicket(files, v)
	}
	b, err := json.MarshalFleet(f)
	if b != nil {
		files["fleet.json"] = b
	}
	return err
}

// fleetTicket makes the Markdown and the one picture it shows.
func fleetTicket(files map[string][]byte, v view.Fleet) error {
	o, err := pictured(files, "fleet", plots.Fleet(v))
	if err != nil {
		return err
	}
	return keep(files, "fleet.md", func(w io.Writer) error { return markdown.WriteFleet(w, v, o) })
}

// FleetTerminal writes the one screen of a fleet to w.
func FleetTerminal(w io.Writer, f *fleet.Fleet, o terminal.Options) error {
	return terminal.WriteFleet(w, view.NewFleet(f), o)
}

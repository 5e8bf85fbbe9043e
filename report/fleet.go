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

// FleetNames returns the names of rendered files in the order in which they are shown to a reader.
func FleetNames(files map[string][]byte) []string {
	var names []string
	for _, name := range []string{"fleet.html", "fleet.md", "fleet.json", "fleet-jobs.png"} {
		if _, ok := files[name]; ok {
			names = append(names, name)
		}
	}
	return names
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
	o := markdown.Options{Files: []string{"fleet.html", "fleet.json"}}
	if f := plots.Fleet(v); !f.Empty() {
		b, err := f.PNG()
		if err != nil {
			return err
		}
		o.Picture, o.Alt = "fleet-"+f.Name+".png", f.Alt
		files[o.Picture] = b
		o.Files = append(o.Files, o.Picture)
	}
	return keep(files, "fleet.md", func(w io.Writer) error { return markdown.WriteFleet(w, v, o) })
}

// FleetTerminal writes the one screen of a fleet to w.
func FleetTerminal(w io.Writer, f *fleet.Fleet, o terminal.Options) error {
	return terminal.WriteFleet(w, view.NewFleet(f), o)
}

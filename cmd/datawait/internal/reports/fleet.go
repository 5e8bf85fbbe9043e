package reports

import (
	"io"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/report"
)

// Fleet are the forms of a fleet.
var Fleet = append([]report.Format{Terminal}, report.FleetFormats()...)

// ParseFleet reads a list of forms for a fleet.
func ParseFleet(list string) ([]report.Format, error) { return parse(list, Fleet) }

// WriteFleet makes the given forms, the screen's left out, as files in dir, and returns their names.
func WriteFleet(f *fleet.Fleet, dir string, formats []report.Format) ([]string, error) {
	files, err := report.RenderFleet(f, fileFormats(formats))
	return put(dir, files, err)
}

// OneFleet writes the main file of a single form to w, for a pipe.
func OneFleet(w io.Writer, f *fleet.Fleet, form report.Format) error {
	files, err := report.RenderFleet(f, []report.Format{form})
	if err == nil {
		_, err = w.Write(files["fleet."+string(form)])
	}
	return err
}

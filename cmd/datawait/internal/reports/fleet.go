package reports

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

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
	var written []string
	for _, name := range report.FleetNames(files) {
		if werr := replace(filepath.Join(dir, name), files[name]); werr != nil {
			return written, fmt.Errorf("writing the fleet: %w", werr)
		}
		written = append(written, name)
	}
	return written, err
}

// OneFleet writes the main file of a single form to w, for a pipe.
func OneFleet(w io.Writer, f *fleet.Fleet, form report.Format) error {
	files, err := report.RenderFleet(f, []report.Format{form})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(files["fleet."+string(form)]))
	return err
}

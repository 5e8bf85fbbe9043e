package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	reporting "github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/terminal"
)

// document is what a command that has no recording of its own shows: a comparison, a fleet. One form goes to stdout or into a file, several
// into a folder.
type document struct {
	name   string // "the comparison"
	screen func(io.Writer, terminal.Options) error
	one    func(io.Writer, reporting.Format) error
	files  func(dir string, formats []reporting.Format) ([]string, error)
}

// chooseForms reads --format in the light of -o: a folder gets all forms, stdout the screen's, where nothing else is said.
func chooseForms(cmd, format, out string, parse func(string) ([]reporting.Format, error)) ([]reporting.Format, error) {
	switch {
	case format != "":
	case out != "" && out != "-" && filepath.Ext(out) == "":
		format = reports.DefaultList
	default:
		format = string(reports.Terminal)
	}
	formats, err := parse(format)
	if err != nil {
		return nil, usage("`datawait "+cmd+" --help` has examples", "--format: %w", err)
	}
	files := slices.ContainsFunc(formats, func(f reporting.Format) bool { return f != reports.Terminal })
	if len(formats) != 1 && (out == "-" || out == "" && files) {
		return nil, usage("name a folder with -o, or ask for one form with --format", "%d forms do not fit on stdout together", len(formats))
	}
	return formats, nil
}

// write puts the forms where they belong.
func (d document) write(s Streams, out string, formats []reporting.Format) error {
	screen := terminal.Options{Color: tty.Color(s.Out), Width: tty.Width(s.Out)}
	single := len(formats) == 1
	switch {
	case single && (out == "" || out == "-"):
		return d.form(s.Out, formats[0], screen)
	case single && filepath.Ext(out) != "":
		return d.file(out, formats[0])
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("making the folder for %s: %w", d.name, err)
	}
	names, err := d.files(out, formats)
	if hasTerminal(formats) {
		screen.Files, screen.Dir = names, out
		if serr := d.screen(s.Out, screen); err == nil {
			err = serr
		}
	}
	return err
}

// form writes one form.
func (d document) form(w io.Writer, f reporting.Format, o terminal.Options) error {
	if f == reports.Terminal {
		return d.screen(w, o)
	}
	return d.one(w, f)
}

// file writes a single form into a file that the user named.
func (d document) file(path string, f reporting.Format) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", d.name, err)
	}
	defer file.Close()
	if err = d.form(file, f, terminal.Options{}); err == nil {
		err = file.Close()
	}
	return err
}

// judged says what --fail-on found, and ends with the status of a finding if it found something.
func judged(s Streams, found []string, err error) error {
	for _, sentence := range found {
		fmt.Fprintln(s.Err, "datawait: --fail-on:", sentence)
	}
	if len(found) > 0 {
		return quietly(statusFindings)
	}
	return failed(err, statusFailed)
}

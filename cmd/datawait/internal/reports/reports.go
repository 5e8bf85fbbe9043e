// Package reports makes the reports of a recording: it opens what a run left, has it analysed, and puts the forms where
// they belong.
//
// It decides which form goes to the screen and which into a file, and that a file appears whole or not at all. What a
// report says is decided by packages analysis and report.
package reports

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/terminal"
)

// Terminal is the form that goes to the screen; the others are package report's.
const Terminal report.Format = "terminal"

// Default are the forms of a report unless others are asked for.
var Default = []report.Format{Terminal, report.HTML, report.Markdown, report.JSON}

// DefaultList is Default as a flag takes it.
var DefaultList = join(Default, ",")

// All are the forms there are.
var All = append([]report.Format{Terminal}, report.Formats()...)

// Parse reads a list such as "terminal,html".
func Parse(list string) ([]report.Format, error) { return parse(list, All) }

// ParseComparison reads such a list for a comparison.
func ParseComparison(list string) ([]report.Format, error) { return parse(list, Comparison) }

func parse(list string, all []report.Format) ([]report.Format, error) {
	var formats []report.Format
	for name := range strings.SplitSeq(list, ",") {
		f := report.Format(strings.TrimSpace(name))
		switch {
		case f == "":
		case !slices.Contains(all, f):
			return nil, fmt.Errorf("%q is not a format; there are %s", f, join(all, ", "))
		case !slices.Contains(formats, f):
			formats = append(formats, f)
		}
	}
	if len(formats) == 0 {
		return nil, fmt.Errorf("no format is given; there are %s", join(all, ", "))
	}
	return formats, nil
}

func join(formats []report.Format, separator string) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, separator)
}

// mostAtOnce bounds how many ranks are analysed side by side: each takes memory of its own.
const mostAtOnce = 8

// Analyse reads a recording, one of its nodes or a bare spool, and returns what it says.
func Analyse(dir string, o analysis.Options) (*analysis.Result, *recording.Recording, error) {
	r, err := recording.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	o.AtOnce = min(runtime.NumCPU(), mostAtOnce)
	result, err := analysis.Run(r.Readers(), o)
	if err != nil {
		return nil, r, fmt.Errorf("analysing %s: %w", dir, err)
	}
	return result, r, nil
}

// Write makes the given forms, the screen's left out, as files in dir. It returns their names in the order of a reader,
// also beside an error that kept some from being made.
func Write(r *analysis.Result, dir string, formats []report.Format) ([]string, error) {
	files, err := report.Render(r, fileFormats(formats))
	return put(dir, files, err)
}

// put writes rendered files and returns their names. rendered is what kept others from being made.
func put(dir string, files map[string][]byte, rendered error) (written []string, err error) {
	for _, name := range report.Names(files) {
		if err := replace(filepath.Join(dir, name), files[name]); err != nil {
			return written, fmt.Errorf("writing the report: %w", err)
		}
		written = append(written, name)
	}
	return written, rendered
}

func fileFormats(formats []report.Format) (files []report.Format) {
	for _, f := range formats {
		if f != Terminal {
			files = append(files, f)
		}
	}
	return files
}

// replace writes a file under another name first, so that a reader, or another node's agent that writes the same
// report, never meets half of one.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already after the rename
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Screen writes the form for the screen. files lie in dir and are named in its last line.
func Screen(w io.Writer, r *analysis.Result, o terminal.Options) error {
	return report.Terminal(w, r, o)
}

// One writes the main file of a single form to w, for a pipe: pictures beside it are left out.
func One(w io.Writer, r *analysis.Result, f report.Format) error {
	files, err := report.Render(r, []report.Format{f})
	if err != nil {
		return err
	}
	content, ok := files["report."+string(f)]
	if !ok {
		return fmt.Errorf("the format %s is made of several files; name a folder for them with -o", f)
	}
	_, err = io.Copy(w, bytes.NewReader(content))
	return err
}

// Package report turns a result into the files and the screen that people read.
//
// All wording, rounding and order is in one display model, [View]; the renderers below only lay it out. Nothing here reads
// a file, a clock or the network: [Render] hands back bytes and its caller writes them.
package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/report/html"
	"github.com/datawait/datawait/report/json"
	"github.com/datawait/datawait/report/markdown"
	"github.com/datawait/datawait/report/plots"
	"github.com/datawait/datawait/report/terminal"
	"github.com/datawait/datawait/report/view"
)

// View is the display model; package view documents it.
type View = view.View

// NewView builds the display model of a result.
func NewView(r *analysis.Result) View { return view.New(r) }

// Format names one form of a report.
type Format string

// The forms of a report. Each is one file, but Markdown and Plots, which bring pictures along.
const (
	HTML     Format = "html" // report.html, self-contained
	Markdown Format = "md"   // report.md, and the one picture it shows
	JSON     Format = "json" // report.json, schema datawait.report/1
	Plots    Format = "png"  // every picture as PNG
)

// Formats returns every form.
func Formats() []Format { return []Format{HTML, Markdown, JSON, Plots} }

// Render makes the files of a report, name to content. A form that fails does not keep the others from being made: the
// error says which failed, and the files of the rest are returned beside it.
func Render(r *analysis.Result, formats []Format) (map[string][]byte, error) {
	v := view.New(r)
	each, failed := make([]map[string][]byte, len(formats)), make([]error, len(formats))
	var all sync.WaitGroup
	for i, f := range formats {
		all.Go(func() {
			each[i] = map[string][]byte{}
			if err := render(each[i], f, r, v); err != nil {
				failed[i] = fmt.Errorf("rendering %s: %w", f, err)
			}
		})
	}
	all.Wait()
	files := map[string][]byte{}
	for _, some := range each {
		maps.Copy(files, some)
	}
	return files, errors.Join(failed...)
}

// Names returns the names of rendered files in the order in which they are shown to a reader.
func Names(files map[string][]byte) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	rank := func(name string) int {
		if i := slices.Index([]string{".html", ".md", ".json"}, path.Ext(name)); i >= 0 {
			return i
		}
		return 3
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return names
}

func render(files map[string][]byte, f Format, r *analysis.Result, v View) error {
	switch f {
	case HTML:
		return keep(files, "report.html", func(w io.Writer) error { return html.Write(w, v) })
	case Markdown:
		return ticket(files, v)
	case Plots:
		return pictures(files, plots.All(v))
	case JSON:
		b, err := json.Marshal(r)
		if b != nil {
			files["report.json"] = b
		}
		return err
	}
	return fmt.Errorf("unknown format %q", f)
}

// keep adds what write writes as a file, unless it fails.
func keep(files map[string][]byte, name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	files[name] = b.Bytes()
	return nil
}

// ticket makes the Markdown and the one picture it shows: the ladder, or the first other picture there is.
func ticket(files map[string][]byte, v View) error {
	o := markdown.Options{Files: []string{"report.html", "report.json"}}
	if all := plots.All(v); len(all) > 0 {
		f := all[0]
		if err := pictures(files, []plots.Figure{f}); err != nil {
			return err
		}
		o.Picture, o.Alt = pictureName(f), f.Alt
		o.Files = append(o.Files, o.Picture)
	}
	return keep(files, "report.md", func(w io.Writer) error { return markdown.Write(w, v, o) })
}

// pictured adds one picture and says that the Markdown of a document shows it; a figure without anything to show is none.
func pictured(files map[string][]byte, document string, f plots.Figure) (o markdown.Options, err error) {
	o.Files = []string{document + ".html", document + ".json"}
	if f.Empty() {
		return o, nil
	}
	b, err := f.PNG()
	if err != nil {
		return o, err
	}
	o.Picture, o.Alt = document+"-"+f.Name+".png", f.Alt
	files[o.Picture] = b
	o.Files = append(o.Files, o.Picture)
	return o, nil
}

func pictureName(f plots.Figure) string { return "report-" + f.Name + ".png" }

func pictures(files map[string][]byte, figures []plots.Figure) error {
	for _, f := range figures {
		b, err := f.PNG()
		if err != nil {
			return err
		}
		files[pictureName(f)] = b
	}
	return nil
}

// Terminal writes the one screen of a report to w.
func Terminal(w io.Writer, r *analysis.Result, o terminal.Options) error {
	return terminal.Write(w, view.New(r), o)
}

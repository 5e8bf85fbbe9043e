// Package terminal lays a report out on one screen of text: at most 110 columns, aligned, and readable without colour.
//
// It decides no word and no number; package view does. It trusts that the view is clean of control characters.
package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// Width is the widest a line may be.
const Width = 110

// Options say how to lay out; the zero value is plain text 110 columns wide.
type Options struct {
	Color bool     // use ANSI colours, as an addition only: nothing depends on them
	Width int      // columns; 0 means Width, and no more than Width is used
	Files []string // the files written beside this screen, named in the last line
	Dir   string   // the folder they are in
	Brief bool     // of a comparison only the table and the predictions
}

// Write lays v out on w.
func Write(w io.Writer, v view.View, o Options) error {
	p := &page{width: Width, paint: paint(o.Color)}
	if o.Width > 0 {
		p.width = max(40, min(Width, o.Width))
	}
	p.head(v)
	p.verdict(v)
	p.ladder(v.Ladder)
	p.gpus(v.GPUs)
	p.anatomies(v)
	p.stages(v.Stages)
	p.fixes(v)
	p.close(v, o)
	_, err := io.WriteString(w, strings.ReplaceAll(p.String(), nbsp, " "))
	return err
}

func (p *page) head(v view.View) {
	parts := []string{"datawait"}
	for _, s := range v.Subject {
		parts = append(parts, s.Text)
	}
	p.wrap(p.paint.bold, "", "", strings.Join(parts, " · "))
	for _, b := range v.Banners {
		p.wrap(p.paint.warn, "  ! ", "    ", b.Lead+": "+b.Text)
	}
	p.blank()
}

func (p *page) verdict(v view.View) {
	p.wrap(p.paint.bold, "", "", v.Headline.Lead+": "+v.Headline.Text)
	p.wrap(p.paint.none, "", "", strings.Join(v.Proof, " "))
	for i, f := range v.Causes[:min(maxCauses, len(v.Causes))] {
		head := "Why  "
		if i > 0 {
			head = "And  "
		}
		p.wrap(p.paint.none, head, "     ", f.Short)
	}
	p.blank()
}

// maxCauses is how many findings fit on one screen; the other files have them all.
const maxCauses = 2

func (p *page) anatomies(v view.View) {
	if v.Step.Whole.Known || len(v.Step.Parts) > 0 {
		p.anatomy(v.Step, nil)
	}
	for i, b := range v.Batches {
		if i == maxBatches {
			break
		}
		p.anatomy(b, b.Notes[:min(1, len(b.Notes))])
	}
	p.blank()
}

// maxBatches is how many loaders fit on one screen.
const maxBatches = 3

func (p *page) anatomy(a view.Anatomy, notes []string) {
	var parts []string
	for _, x := range a.Parts {
		s := x.Name + " " + x.Text
		if x.Note != "" && x.Known {
			s += " (" + x.Note + ")"
		}
		parts = append(parts, s)
	}
	head := a.Name
	switch {
	case !a.Whole.Known:
		parts = append(parts, "length "+a.Whole.Words())
	case a.Whole.Span != "":
		head += ", " + a.Whole.Text
		head += " (" + a.Whole.Span + ")"
	default:
		head += ", " + a.Whole.Text
	}
	pad := max(2, anatomyHead-columns(head))
	p.wrap(p.paint.none, head+strings.Repeat(" ", pad), strings.Repeat(" ", anatomyHead), strings.Join(append(parts, notes...), " · "))
}

// anatomyHead is the width of the column with the name of a whole.
const anatomyHead = 30

func (p *page) close(v view.View, o Options) {
	p.wrap(p.paint.none, "How sure: ", "          ", strings.Join(v.Sure, " · "))
	if len(o.Files) > 0 {
		s := strings.Join(o.Files, ", ")
		if o.Dir != "" {
			s += fmt.Sprintf(" in %s", view.Clean(o.Dir, Width))
		}
		p.wrap(p.paint.none, "", "", s)
	}
}

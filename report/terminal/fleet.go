package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// maxJobs is how many jobs fit on one screen; the other forms have more.
const maxJobs = 15

// WriteFleet lays a fleet out on w.
func WriteFleet(w io.Writer, v view.Fleet, o Options) error {
	p := &page{width: Width, paint: paint(o.Color)}
	if o.Width > 0 {
		p.width = max(40, min(Width, o.Width))
	}
	p.fleetHead(v)
	p.wrap(p.paint.bold, "", "", v.Headline.Lead+": "+v.Headline.Text)
	p.wrap(p.paint.none, "", "", strings.Join(v.Proof, " "))
	p.blank()
	p.jobs(v)
	for _, s := range v.Slow {
		p.wrap(p.paint.none, "Slow ranks: ", hang, s)
	}
	p.blank()
	for _, f := range v.Facts {
		p.wrap(p.paint.none, f.Name+": ", hang, f.Text)
	}
	for _, s := range v.Remarks {
		p.wrap(p.paint.none, "Note: ", hang, s)
	}
	p.blank()
	if len(o.Files) > 0 {
		s := strings.Join(o.Files, ", ")
		if o.Dir != "" {
			s += fmt.Sprintf(" in %s", view.Clean(o.Dir, Width))
		}
		p.wrap(p.paint.none, "", "", s)
	}
	_, err := io.WriteString(w, strings.ReplaceAll(p.String(), nbsp, " "))
	return err
}

func (p *page) fleetHead(v view.Fleet) {
	parts := []string{"datawait fleet", v.When}
	for _, s := range v.Subject {
		parts = append(parts, s.Text)
	}
	p.wrap(p.paint.bold, "", "", strings.Join(parts, " · "))
	for _, b := range v.Banners {
		p.wrap(p.paint.warn, "  ! ", "    ", b.Lead+": "+b.Text)
	}
	p.blank()
}

// jobs writes the ranking. A screen that is too narrow for the table gets a paragraph for each job.
func (p *page) jobs(v view.Fleet) {
	if len(v.Jobs) == 0 {
		return
	}
	shown := v.Jobs[:min(maxJobs, len(v.Jobs))]
	rows := [][]string{jobHeads(v)}
	for _, j := range shown {
		rows = append(rows, jobCells(j, v.Priced))
	}
	widths := make([]int, len(rows[0]))
	total := 2
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], columns(r[i]))
		}
		total += widths[i] + 2
	}
	for i, r := range rows {
		paint := p.paint.none
		if i == 0 {
			paint = p.paint.faint
		}
		if total > p.width+2 {
			p.jobParagraph(rows[0], r, i)
		} else {
			p.line(paint(jobLine(r, widths)))
		}
		if i > 0 {
			j := shown[i-1]
			p.wrap(p.paint.faint, "      ", "      ", strings.Join(notesOf(j), " · "))
		}
	}
	if n := len(v.Jobs) - maxJobs; n > 0 {
		p.wrap(p.paint.faint, "  ", "  ", fmt.Sprintf("and %d more jobs", n))
	}
	p.blank()
}

// notesOf are the lines below a job: what is to be known of it, and how it was before.
func notesOf(j view.FleetJob) []string {
	notes := j.Notes
	if j.Trend != "" {
		notes = append(notes[:len(notes):len(notes)], "against before: "+j.Trend)
	}
	return notes
}

func jobHeads(v view.Fleet) []string {
	heads := []string{"", "most GPU-hours lost first", "GPUs", "allocated", "waiting", "idle", "lost", "SM", "data wait"}
	if v.Priced {
		heads[6] = "lost, cost"
	}
	return heads
}

func jobCells(j view.FleetJob, priced bool) []string {
	const longest = 34
	waiting := j.Waiting.Number
	if j.Waiting.Span != "" {
		waiting += " (" + j.Waiting.Span + ")"
	}
	lost := j.Lost.Number
	if priced && j.Money.Known {
		lost += ", " + j.Money.Text
	}
	return []string{j.Position, view.Clean(j.Name, longest), j.GPUs, j.Allocated.Number, waiting, j.Idle.Number, lost, j.SM.Number, j.Wait.Text}
}

func jobLine(cells []string, widths []int) string {
	s := "  " + padLeft(cells[0], widths[0]) + "  " + pad(cells[1], widths[1])
	for i := 2; i < len(cells); i++ {
		s += "  " + padLeft(cells[i], widths[i])
	}
	return strings.TrimRight(s, " ")
}

// jobParagraph writes a job as words.
func (p *page) jobParagraph(heads, cells []string, i int) {
	if i == 0 {
		return
	}
	parts := []string{cells[1]}
	for n := 2; n < len(cells); n++ {
		parts = append(parts, heads[n]+" "+cells[n])
	}
	p.wrap(p.paint.none, "  "+cells[0]+" ", "      ", strings.Join(parts, " · "))
}

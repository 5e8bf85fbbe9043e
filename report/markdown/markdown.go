// Package markdown lays a report out as a ticket of one page that reads well on GitHub and in Jira.
//
// The title is the verdict; three bullets prove it; one table lists at most five fixes; one picture; then what was not
// measured and which files to attach. It decides no word and no number; package view does. Text from the job is set so that
// nothing in it can become a link, a picture, a mention, a table cell or HTML.
package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// maxFixes is how many fixes a ticket lists; the page has them all.
const maxFixes = 5

// maxGaps is how many things that were not measured a ticket lists.
const maxGaps = 6

// Options name the files beside the ticket.
type Options struct {
	Picture string   // file name of the picture; "" for none
	Alt     string   // the picture in words
	Files   []string // the full report, to be attached
}

// Write lays v out on w.
func Write(w io.Writer, v view.View, o Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", prose(v.Title), subject(v))
	for _, n := range v.Banners {
		fmt.Fprintf(&b, "> **%s.** %s\n\n", prose(n.Lead), prose(n.Text))
	}
	for _, s := range v.Bullets {
		fmt.Fprintf(&b, "- %s\n", prose(s))
	}
	b.WriteByte('\n')
	fixes(&b, v)
	stages(&b, v.Stages)
	gpus(&b, v.GPUs)
	if o.Picture != "" {
		fmt.Fprintf(&b, "![%s](%s)\n\n", prose(o.Alt), o.Picture)
	}
	gaps(&b, v)
	fmt.Fprintf(&b, "**How sure:** %s.\n", prose(strings.Join(v.Sure, " · ")))
	if len(o.Files) > 0 {
		fmt.Fprintf(&b, "\n**Attached:** %s\n", codes(o.Files))
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), "\u00a0", " "))
	return err
}

func subject(v view.View) string {
	var parts []string
	for _, s := range v.Subject {
		if s.Name {
			parts = append(parts, code(s.Text))
		} else {
			parts = append(parts, prose(s.Text))
		}
	}
	if v.When != "" {
		parts = append(parts, v.When)
	}
	return strings.Join(parts, " · ")
}

func fixes(b *strings.Builder, v view.View) {
	if v.Fixes.Words != "" {
		fmt.Fprintf(b, "**Fixes:** %s\n\n", prose(v.Fixes.Words))
	} else {
		fmt.Fprintf(b, "| | fix | step, %s%s | 95 %% interval | wait | effort |\n|--:|:--|--:|--:|--:|:--|\n", v.Fixes.Unit, grade(v.Fixes))
		for _, f := range v.Fixes.Rows[:min(maxFixes, len(v.Fixes.Rows))] {
			change := prose(f.To.Text)
			if f.To.Known {
				change = f.From.Number + " → " + f.To.Number
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", f.Position, prose(f.Title), prose(change), prose(f.To.Span+f.Mark), prose(f.Wait.Text), prose(f.Effort))
		}
		b.WriteByte('\n')
		if len(v.Fixes.Notes) > 0 {
			fmt.Fprintf(b, "%s.\n\n", prose(strings.Join(v.Fixes.Notes, " · ")))
		}
		if s := view.Recipes(v.Fixes.Rows[:min(maxFixes, len(v.Fixes.Rows))]); s != "" {
			fmt.Fprintf(b, "**Recipes:** %s\n\n", prose(s))
		}
		if v.Fixes.Plan != "" {
			fmt.Fprintf(b, "**One after the other:** %s\n\n", prose(v.Fixes.Plan))
		}
	}
	var short []string
	for _, s := range v.NoHelpIn {
		short = append(short, prose(s))
	}
	if len(short) > 0 {
		fmt.Fprintf(b, "**Will not help:** %s.\n\n", strings.Join(short, " · "))
	}
	short = nil
	for _, u := range v.Unpriced {
		short = append(short, prose(u.Title))
	}
	if len(short) > 0 {
		fmt.Fprintf(b, "**May help, by how much this run cannot tell:** %s.\n\n", strings.Join(short, " · "))
	}
}

// maxGPUs is how many GPUs a ticket lists, and maxNotes how much it says of them.
const (
	maxGPUs  = 8
	maxNotes = 4
)

// maxStages is how many kinds of work in a batch a ticket lists.
const maxStages = 3

// stages is where the time of the first loader's batch goes inside.
func stages(b *strings.Builder, all []view.Stages) {
	if len(all) > 0 {
		table(b, all[0].Table, maxStages)
	}
}

func table(b *strings.Builder, t view.Table, most int) {
	if len(t.Rows) == 0 {
		return
	}
	var head, line []string
	for _, c := range t.Columns {
		head = append(head, prose(c.Head))
		if c.Number {
			line = append(line, "--:")
		} else {
			line = append(line, ":--")
		}
	}
	fmt.Fprintf(b, "| %s |\n|%s|\n", strings.Join(head, " | "), strings.Join(line, "|"))
	for _, row := range t.Rows[:min(most, len(t.Rows))] {
		var cells []string
		for _, c := range row {
			cells = append(cells, prose(c.Text))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteByte('\n')
}

func gpus(b *strings.Builder, g view.GPUs) {
	table(b, g.Table, maxGPUs)
	for _, s := range []string{g.Hours, g.Money} {
		if s != "" {
			fmt.Fprintf(b, "%s\n\n", prose(s))
		}
	}
	for _, s := range g.Notes[:min(maxNotes, len(g.Notes))] {
		fmt.Fprintf(b, "- %s\n", prose(s))
	}
	if len(g.Notes) > 0 {
		b.WriteByte('\n')
	}
}

func grade(f view.Fixes) string {
	if f.Grade == "" {
		return ""
	}
	return " (grade " + f.Grade + ")"
}

func gaps(b *strings.Builder, v view.View) {
	if len(v.Gaps) == 0 {
		return
	}
	var parts []string
	for _, g := range v.Gaps[:min(maxGaps, len(v.Gaps))] {
		parts = append(parts, prose(g.What+" ("+strings.TrimSuffix(g.Why, ".")+")"))
	}
	if n := len(v.Gaps) - maxGaps; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more in the report", n))
	}
	fmt.Fprintf(b, "**Not measured:** %s.\n\n", strings.Join(parts, "; "))
}

func codes(names []string) string {
	out := make([]string, len(names))
	for i, s := range names {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// WriteComparison lays two runs side by side out as a ticket.
func WriteComparison(w io.Writer, v view.Comparison, o Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", prose(v.Title))
	for _, s := range v.Sides {
		fmt.Fprintf(&b, "- **%s:** %s\n", s.Name, phrases(s.Pieces))
	}
	b.WriteByte('\n')
	for _, n := range v.Banners {
		fmt.Fprintf(&b, "> **%s.** %s\n\n", prose(n.Lead), prose(n.Text))
	}
	fmt.Fprintf(&b, "%s\n\n", prose(v.Headline.Text))
	compareTable(&b, v.Groups)
	changes(&b, v.Changes)
	checks(&b, v)
	if o.Picture != "" {
		fmt.Fprintf(&b, "![%s](%s)\n\n", prose(o.Alt), o.Picture)
	}
	compareTable(&b, []view.RowGroup{v.Accounts})
	for _, g := range v.NotCompared {
		fmt.Fprintf(&b, "- **Not compared:** %s. %s\n", prose(g.What), prose(g.Why))
	}
	for _, s := range v.Remarks {
		fmt.Fprintf(&b, "- %s\n", prose(s))
	}
	if len(o.Files) > 0 {
		fmt.Fprintf(&b, "\n**Attached:** %s\n", codes(o.Files))
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), "\u00a0", " "))
	return err
}

func phrases(pieces []view.Phrase) string {
	var parts []string
	for _, s := range pieces {
		if s.Name {
			parts = append(parts, code(s.Text))
		} else {
			parts = append(parts, prose(s.Text))
		}
	}
	return strings.Join(parts, " · ")
}

func compareTable(b *strings.Builder, groups []view.RowGroup) {
	head := false
	for _, g := range groups {
		for _, r := range g.Rows {
			if !head {
				b.WriteString("| | before | after | change | grade | |\n|:--|--:|--:|--:|:--|:--|\n")
				head = true
			}
			change := r.Change.WithRange()
			if !r.Change.Known {
				change = ""
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", prose(upper(r.Name)), prose(r.Before.WithRange()), prose(r.After.WithRange()), prose(change), prose(r.Grade), prose(r.Outcome))
		}
	}
	if head {
		b.WriteByte('\n')
	}
	for _, g := range groups {
		for _, r := range g.Rows {
			if r.Note != "" {
				fmt.Fprintf(b, "%s: %s\n\n", prose(upper(r.Name)), prose(r.Note))
			}
		}
	}
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func changes(b *strings.Builder, t view.Table) {
	if len(t.Rows) == 0 {
		return
	}
	var parts []string
	for _, row := range t.Rows {
		parts = append(parts, prose(row[0].Text)+" "+code(row[1].Text)+" → "+code(row[2].Text))
	}
	fmt.Fprintf(b, "**Changed:** %s\n\n", strings.Join(parts, " · "))
}

func checks(b *strings.Builder, v view.Comparison) {
	if len(v.Checks) > 0 {
		b.WriteString("| fix | predicted | measured | error | | |\n|:--|--:|--:|--:|:--|:--|\n")
		for _, c := range v.Checks {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", prose(c.Title), prose(c.Predicted.WithRange()), prose(c.Measured.WithRange()), prose(errorOf(c)), prose(c.Verdict), prose(c.Why))
		}
		b.WriteByte('\n')
	}
	for _, s := range append([]string{v.NoChecks}, v.Unclear...) {
		if s != "" {
			fmt.Fprintf(b, "- **Predictions:** %s\n", prose(s))
		}
	}
	if v.Record != "" {
		fmt.Fprintf(b, "- **Track record:** %s.\n", prose(v.Record))
	}
	b.WriteByte('\n')
}

func errorOf(c view.Check) string {
	if !c.Error.Known {
		return ""
	}
	return c.Error.Text
}

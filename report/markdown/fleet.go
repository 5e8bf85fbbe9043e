package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/datawait/datawait/report/view"
)

// maxJobs is how many jobs fit into a ticket; the other files have more.
const maxJobs = 20

// WriteFleet lays a fleet out as a ticket.
func WriteFleet(w io.Writer, v view.Fleet, o Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", prose(v.Title))
	fmt.Fprintf(&b, "%s · %s\n\n", prose(v.When), phrases(v.Subject))
	for _, n := range v.Banners {
		fmt.Fprintf(&b, "> **%s.** %s\n\n", prose(n.Lead), prose(n.Text))
	}
	fmt.Fprintf(&b, "%s\n\n", prose(v.Headline.Text))
	if len(v.Proof) > 0 {
		fmt.Fprintf(&b, "%s\n\n", prose(strings.Join(v.Proof, " ")))
	}
	fleetJobs(&b, v)
	if o.Picture != "" {
		fmt.Fprintf(&b, "![%s](%s)\n\n", prose(o.Alt), o.Picture)
	}
	for _, s := range v.Slow {
		fmt.Fprintf(&b, "- **Slow ranks:** %s\n", prose(s))
	}
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "- **%s:** %s\n", prose(f.Name), prose(f.Text))
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

func fleetJobs(b *strings.Builder, v view.Fleet) {
	if len(v.Jobs) == 0 {
		return
	}
	b.WriteString("| job | allocated | waiting for data | idle | SM activity | lost, against before |\n|:--|--:|--:|--:|--:|:--|\n")
	for _, j := range v.Jobs[:min(maxJobs, len(v.Jobs))] {
		name := code(j.Name)
		if len(j.Notes) > 0 {
			name += " (" + prose(strings.Join(j.Notes, "; ")) + ")"
		}
		lost := j.Lost.Text
		if j.Money.Known {
			lost += ", costing " + j.Money.Text
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", name, prose(j.Allocated.Text), prose(j.Waiting.WithRange()), prose(j.Idle.Text), prose(j.SM.Text), prose(lost+"; "+j.Trend))
	}
	b.WriteByte('\n')
	if n := len(v.Jobs) - maxJobs; n > 0 {
		fmt.Fprintf(b, "%d more jobs are in the other files.\n\n", n)
	}
}

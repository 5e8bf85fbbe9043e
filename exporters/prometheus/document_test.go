package prometheus

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write METRICS.md anew")

const metricsHead = `# Metrics of datawait serve

Made of the tables of this package, and held to them by a test; ` + "`go test ./exporters/prometheus -update`" + ` writes it anew. What a formula names are fields of
package ` + "`analysis/live`" + `; the accounts are explained in ` + "`analysis/ledger`" + `.

- Times are seconds, sizes bytes, shares are not exported: divide sums by sums. A job's wait share is
  ` + "`sum by (training_job) (rate(datawait_data_wait_seconds_total[5m])) / sum by (training_job) (rate(datawait_training_seconds_total[5m]))`" + `.
- Each counter that is a part of something has the whole beside it, and the whole is only what was seen. A series that is not there is not known; it is never 0 instead.
- Every counter of a GPU, a rank or a job is 0 in its first scrape and for the scrape interval (` + "`--scrape-interval`" + `: give the longest of your servers), so that
  increase() sees all of it, of short jobs too. What a restarted agent read back from its state file goes on where it was.
- A counter never goes back while its subject is there. A subject that has ended stays for the time of ` + "`--forget`" + `; then all its series are gone.
- Labels that name a tenant are ` + "`training_job`, `training_namespace` and `training_pod`" + `, empty where not known. ` + "`training_job`" + ` is what the job calls itself (` + "`DATAWAIT_JOB`" + `, else
  Slurm's name and number, else torchrun's run), else its script; of a GPU whose job has no hook, or has not begun to train, what the scheduler calls it: the pod, or
  Slurm's number. A second job of one name on one machine is called ` + "`NAME (2)`" + `. Names are at most 200 bytes of valid UTF-8; control characters
  are shown as U+FFFD. Rows whose labels are the same (two jobs of one name) are one: counters are added, and it runs while one of them does.
- No more than ` + "`--series-limit`" + ` series are shown. Room is given to whole subjects, in the order: the agent and the machine (always), GPUs and their holders, tenancies and ranks
  that run, jobs that run, what has ended. What is shown keeps its place while it is there.

Beside these there are ` + "`go_*`" + ` of the agent's runtime and ` + "`promhttp_*`" + `: how many scrapes were answered how.
`

// document writes METRICS.md.
func document() string {
	var b strings.Builder
	b.WriteString(metricsHead)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\nOf %s.", s.title, s.subject)
		if labels := s.metrics[0].labels[:len(s.metrics[0].labels)-len(s.metrics[0].more)]; len(labels) > 0 {
			fmt.Fprintf(&b, " Labels: %s.", code(labels))
		}
		b.WriteString("\n\n| name | type | what | formula | absent when |\n|---|---|---|---|---|\n")
		for _, m := range s.metrics {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, what(m), m.from, m.gone)
		}
	}
	return b.String()
}

func what(m *metric) string {
	if len(m.more) == 0 {
		return m.help
	}
	return m.help + " Labels beside those above: " + code(m.more) + "."
}

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// METRICS.md says what the tables say.
func TestMetricsFile(t *testing.T) {
	want := document()
	if *update {
		if err := os.WriteFile("METRICS.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile("METRICS.md")
	if err != nil || string(got) != want {
		t.Errorf("METRICS.md is not that of the tables (%v); run: go test ./exporters/prometheus -update, and look at the difference: a name may be added, none renamed", err)
	}
}

// Each metric says in its help what it is in whole sentences, and where it comes from.
func TestHelps(t *testing.T) {
	for _, s := range sections() {
		for _, m := range s.metrics {
			if !strings.HasSuffix(m.help, ".") || strings.ContainsAny(m.help+m.from+m.gone, "|\n") || m.from == "" {
				t.Errorf("%s: help %q, from %q", m.name, m.help, m.from)
			}
			if strings.Contains(m.name, "_seconds") && !strings.Contains(strings.ToLower(m.help), "seconds") {
				t.Errorf("%s does not say its unit: %q", m.name, m.help)
			}
		}
	}
}

package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	heading   = regexp.MustCompile(`(?m)^## (\w+)$`)
	promql    = regexp.MustCompile("(?ms)^```promql\n(.*?)^```$")
	ownMetric = regexp.MustCompile(`\bdatawait_[a-z0-9_]+\b`)
	recorded  = regexp.MustCompile(`\b\w+:datawait_[a-z0-9_]+:\w+\b`)
	quoted    = regexp.MustCompile(`"[^"]*"`)
)

func runbook(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// entries cuts the runbook at its headings.
func entries(t *testing.T) map[string]string {
	t.Helper()
	text, entry := runbook(t), map[string]string{}
	at := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		entry[text[h[2]:h[3]]] = text[h[1]:end]
	}
	return entry
}

func TestEveryAlertHasARunbookEntry(t *testing.T) {
	_, alerts := rules(t)
	entry := entries(t)
	for _, a := range alerts {
		text, ok := entry[a.Alert]
		if !ok {
			t.Errorf("RUNBOOK.md has no entry %s", a.Alert)
		}
		for _, part := range []string{"**Means.**", "**Look at.**", "**Usually fixes it.**", "**False alarm when**", "**Command.**"} {
			if ok && !strings.Contains(text, part) {
				t.Errorf("RUNBOOK.md, %s: no %s", a.Alert, part)
			}
		}
		delete(entry, a.Alert)
	}
	for name := range entry {
		t.Errorf("RUNBOOK.md has an entry %s, and no alert is called so", name)
	}
}

// A query in the runbook is one that Prometheus reads.
func TestQueriesOfTheRunbook(t *testing.T) {
	queries := promql.FindAllStringSubmatch(runbook(t), -1)
	if len(queries) < 10 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	var file strings.Builder
	file.WriteString("groups:\n  - name: runbook\n    rules:\n")
	for i, q := range queries {
		fmt.Fprintf(&file, "      - record: runbook:query:%d\n        expr: |\n          %s\n", i, strings.ReplaceAll(strings.TrimSpace(q[1]), "\n", "\n          "))
	}
	name := filepath.Join(t.TempDir(), "runbook.rules.yml")
	if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", name)
}

// The rules and the runbook use metrics that exist, and recorded series that are recorded.
func TestMetricsExist(t *testing.T) {
	text, err := os.ReadFile("../prometheus/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, name := range ownMetric.FindAllString(string(text), -1) {
		exist[name] = true
	}
	records, alerts := rules(t)
	recording := map[string]bool{}
	for _, r := range records {
		recording[r.Record] = false
	}
	used := func(where, expr string) {
		for _, name := range recorded.FindAllString(expr, -1) {
			if _, ok := recording[name]; !ok {
				t.Errorf("%s uses %s, which is not recorded", where, name)
			}
			recording[name] = true
		}
		expr = quoted.ReplaceAllString(recorded.ReplaceAllString(expr, ""), "")
		for _, name := range ownMetric.FindAllString(expr, -1) {
			if !exist[name] {
				t.Errorf("%s uses %s, which METRICS.md does not have", where, name)
			}
		}
	}
	for _, r := range append(records, alerts...) {
		used(r.Record+r.Alert, r.Expr)
	}
	for _, q := range promql.FindAllStringSubmatch(runbook(t), -1) {
		used("RUNBOOK.md", q[1])
	}
	for name, is := range recording {
		if !is {
			t.Errorf("%s is recorded and no rule uses it", name)
		}
	}
}

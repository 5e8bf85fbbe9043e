package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promtool is needed: queries that nothing has read are not shipped.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not here; Debian and Ubuntu have it in the package prometheus (.ci/setup fetches it)")
	}
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// queries reads the list back.
func queries(t *testing.T) (found []string) {
	t.Helper()
	text, err := os.ReadFile("queries.txt")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	if len(found) < 60 {
		t.Fatalf("%d queries", len(found))
	}
	return found
}

// asRules puts every query into a rule file, which promtool can read and run.
func asRules(t *testing.T) string {
	t.Helper()
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for i, q := range queries(t) {
		rules = append(rules, rule{fmt.Sprintf("query:%d", i), q})
	}
	return write(t, "queries.rules.yml", map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
}

// write writes JSON, which is YAML.
func write(t *testing.T, name string, content any) string {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPrometheusReadsEveryQuery(t *testing.T) { promtool(t, "check", "rules", asRules(t)) }

// No variable is left in the list, and it has what the dashboards ask.
func TestListHasEveryQuery(t *testing.T) {
	listed := map[string]bool{}
	for _, q := range queries(t) {
		if strings.Contains(q, "$") {
			t.Errorf("a variable is left in %s", q)
		}
		listed[q] = true
	}
	for _, b := range boards() {
		for _, p := range pictures(t, b.file) {
			for _, q := range p.Targets {
				if !listed[chosen.Replace(q.Expr)] {
					t.Errorf("%s, %s: a query is not listed: %s", b.file, p.Title, q.Expr)
				}
			}
		}
	}
}

var metric = regexp.MustCompile(`\bdatawait_[a-z0-9_]+\b`)

// The dashboards ask for metrics that exist.
func TestMetricsExist(t *testing.T) {
	text, err := os.ReadFile("../prometheus/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, name := range metric.FindAllString(string(text), -1) {
		exist[name] = true
	}
	histogram := "datawait_step_duration_seconds"
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		exist[histogram+suffix] = exist[histogram]
	}
	for _, q := range queries(t) {
		for _, name := range metric.FindAllString(q, -1) {
			if !exist[name] {
				t.Errorf("METRICS.md has no %s: %s", name, q)
			}
		}
	}
}

// DATAWAIT_PROMETHEUS is the address of a server that scrapes datawait serve: it answers every query.
func TestServerAnswersEveryQuery(t *testing.T) {
	server := os.Getenv("DATAWAIT_PROMETHEUS")
	if server == "" {
		t.Skip("DATAWAIT_PROMETHEUS names no server")
	}
	for _, q := range queries(t) {
		answer, err := http.Get(server + "/api/v1/query?query=" + url.QueryEscape(q))
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Status, Error string }
		err = json.NewDecoder(answer.Body).Decode(&said)
		answer.Body.Close()
		if err != nil || said.Status != "success" {
			t.Errorf("%s: %s %s %v", q, said.Status, said.Error, err)
		}
	}
}

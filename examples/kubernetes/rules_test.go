package kubernetes

import (
	"flag"
	"os"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write base/prometheusrule.yaml again")

const (
	shipped  = "../../exporters/rules/datawait.rules.yml"
	manifest = "base/prometheusrule.yaml"
	head     = `# Made of ../../../exporters/rules/datawait.rules.yml; change that, and run go test ./... -update here.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: datawait
  labels:
    app.kubernetes.io/name: datawait
spec:
`
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// asManifest puts a file of rules where the operator looks for groups, comments and all.
func asManifest(rules string) string {
	var b strings.Builder
	b.WriteString(head)
	for line := range strings.Lines(rules) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestTheRulesAreTheShippedOnes(t *testing.T) {
	want := asManifest(read(t, shipped))
	if *update {
		if err := os.WriteFile(manifest, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, manifest) != want {
		t.Errorf("%s is not what %s says: run go test ./... -update", manifest, shipped)
	}
}

// The operator sees every rule that Prometheus would read from the file.
func TestNoRuleIsLostOnTheWay(t *testing.T) {
	var file monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict([]byte(read(t, shipped)), &file); err != nil {
		t.Fatal(err)
	}
	got := only[*monitoring.PrometheusRule](t, build(t, "base")).Spec
	count := func(s monitoring.PrometheusRuleSpec) (n int) {
		for _, g := range s.Groups {
			n += len(g.Rules)
		}
		return n
	}
	if count(got) != count(file) || count(file) < 10 {
		t.Errorf("%d rules, and %d in %s", count(got), count(file), shipped)
	}
}

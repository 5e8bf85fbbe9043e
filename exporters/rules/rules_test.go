package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const ruleFile = "datawait.rules.yml"

// rule is what is looked at here of a rule; promtool checks the rest.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}

func rules(t *testing.T) (records, alerts []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	read(t, ruleFile, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alerts = append(alerts, r)
			} else {
				records = append(records, r)
			}
		}
	}
	if len(records) < 5 || len(alerts) < 10 {
		t.Fatalf("%s has %d recording rules and %d alerts", ruleFile, len(records), len(alerts))
	}
	return records, alerts
}

// promtool is needed: rules that nothing has run are not shipped.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not here; Debian and Ubuntu have it in the package prometheus (.ci/setup installs it)")
	}
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPromtoolAcceptsTheRules(t *testing.T) { promtool(t, "check", "rules", ruleFile) }

// The time series of testdata raise each alert when they should, and not when they should not.
func TestAlertsFireAndResolve(t *testing.T) {
	_, alerts := rules(t)
	for _, a := range alerts {
		t.Run(a.Alert, func(t *testing.T) {
			t.Parallel()
			promtool(t, "test", "rules", alone(t, a.Alert))
		})
	}
}

// A page that is read at night has all of this, the same for every alert.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	_, alerts := rules(t)
	for _, a := range alerts {
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		if a.For == "" {
			t.Errorf("%s fires at once", a.Alert)
		}
		for _, name := range []string{"summary", "description", "command", "runbook_url"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		if want := "/exporters/rules/RUNBOOK.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url %q, want …%s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if s := a.Annotations["summary"]; !strings.Contains(s, "$value") && !strings.Contains(s, "$labels") {
			t.Errorf("%s: its summary names nothing: %q", a.Alert, s)
		}
	}
}

// unsafe finds a label that is put into a command without being looked at: a job may be called $(reboot).
var unsafe = regexp.MustCompile(`\{\{[^}]*\$labels[^}]*\}\}`)

func TestCommandsAreSafeToPaste(t *testing.T) {
	_, alerts := rules(t)
	const guarded = `{{ if match "^[A-Za-z0-9._/-]+$" $labels.training_job }}{{ $labels.training_job }}{{ else }}NAME{{ end }}`
	looked := `{{ if or (eq $labels.training_job "") (eq $labels.training_job "(shared)") }}`
	for _, a := range alerts {
		rest := strings.ReplaceAll(strings.ReplaceAll(a.Annotations["command"], guarded, ""), looked, "")
		if found := unsafe.FindString(rest); found != "" {
			t.Errorf("%s: %s stands in its command as it is", a.Alert, found)
		}
	}
}

// Each alert is seen to fire, to stay silent in two cases that are near, and to resolve.
func TestEveryAlertIsTested(t *testing.T) {
	_, alerts := rules(t)
	if files, err := filepath.Glob("testdata/*"); err != nil || len(files) != len(alerts) {
		t.Errorf("testdata has %d files for %d alerts (%v)", len(files), len(alerts), err)
	}
	for _, a := range alerts {
		fires, resolves, silent := 0, 0, 0
		for _, group := range cases(t, a.Alert) {
			fired, quiet := false, true
			slices.SortStableFunc(group.Checks, func(x, y check) int { return x.minutes(t) - y.minutes(t) })
			for _, c := range group.Checks {
				switch {
				case c.Alert != a.Alert:
					t.Errorf("%s.test.yml, %q looks at %s", a.Alert, group.Name, c.Alert)
				case len(c.Expected) > 0:
					fired, quiet = true, false
				case fired:
					resolves++
				}
			}
			if fired {
				fires++
			}
			if quiet && len(group.Checks) > 0 {
				silent++
			}
			if want := map[bool]string{true: "silent", false: "fires|resolves"}[quiet]; !regexp.MustCompile("^(" + want + `)\b`).MatchString(group.Name) {
				t.Errorf("%s.test.yml: %q is not called after what it is (%s)", a.Alert, group.Name, want)
			}
		}
		if fires == 0 || resolves == 0 || silent < 2 {
			t.Errorf("%s: fires in %d cases, resolves in %d, stays silent in %d", a.Alert, fires, resolves, silent)
		}
	}
}

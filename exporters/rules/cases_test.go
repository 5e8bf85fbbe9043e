package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// series is a case of a file in testdata: time series and what alert they raise when.
type series struct {
	Name   string  `yaml:"name"`
	Checks []check `yaml:"alert_rule_test"`
}

type check struct {
	At       string `yaml:"eval_time"`
	Alert    string `yaml:"alertname"`
	Expected []any  `yaml:"exp_alerts"`
}

func (c check) minutes(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(c.At, "m"))
	if err != nil {
		t.Fatalf("eval_time %q is not in minutes", c.At)
	}
	return n
}

// cases reads the test of an alert, which lies in a file of its name.
func cases(t *testing.T, alert string) []series {
	t.Helper()
	var file struct {
		Tests []series `yaml:"tests"`
	}
	read(t, "testdata/"+alert+".test.yml", &file)
	return file.Tests
}

// alone lays an alert, with what is recorded for it, and its test out in a folder: promtool runs every rule of a file every minute of
// every case, and the other alerts are most of them.
func alone(t *testing.T, alert string) string {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string           `yaml:"name"`
			Rules []map[string]any `yaml:"rules"`
		} `yaml:"groups"`
	}
	read(t, ruleFile, &file)
	for i := range file.Groups {
		file.Groups[i].Rules = slices.DeleteFunc(file.Groups[i].Rules, func(r map[string]any) bool { return r["record"] == nil && r["alert"] != alert })
	}
	rules, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("testdata", alert+".test.yml")
	test, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "testdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{ruleFile: rules, name: test} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

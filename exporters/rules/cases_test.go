package rules

import (
	"strconv"
	"strings"
	"testing"
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

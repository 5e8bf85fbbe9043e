package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// absence is how a description says what it means when there is no number.
var absence = regexp.MustCompile(`(?i)no value|not measured|no line|a gap|empty|missing|not listed`)

func TestPanelsSayWhatTheyShow(t *testing.T) {
	for _, b := range boards() {
		ids := map[int]bool{}
		for _, p := range pictures(t, b.file) {
			where := b.file + ", " + p.Title
			if len(p.Description) < 30 || !absence.MatchString(p.Description) {
				t.Errorf("%s: its description does not say what it means when nothing is shown: %q", where, p.Description)
			}
			if p.FieldConfig.Defaults.Unit == "" {
				t.Errorf("%s has no unit", where)
			}
			if len(p.Targets) == 0 || p.Title == "" {
				t.Errorf("%s: %d queries", where, len(p.Targets))
			}
			if p.ID == 0 || ids[p.ID] {
				t.Errorf("%s: number %d", where, p.ID)
			}
			ids[p.ID] = true
		}
	}
}

// What was not measured is a gap, an empty cell or the words for it, and no number.
func TestNothingMissingIsShownAsZero(t *testing.T) {
	forged := regexp.MustCompile(`vector\s*\(|absent|\bor\s+0`)
	for _, b := range boards() {
		for _, p := range pictures(t, b.file) {
			where := b.file + ", " + p.Title
			if v := p.FieldConfig.Defaults.NoValue; v != nothing {
				t.Errorf("%s shows %q for nothing", where, v)
			}
			if p.Type == "timeseries" && p.FieldConfig.Defaults.Custom.SpanNulls != false {
				t.Errorf("%s draws over gaps", where)
			}
			if p.Type == "stat" && (!slices.Equal(p.Options.ReduceOptions.Calcs, []string{"last"}) || !p.Targets[0].Instant) {
				t.Errorf("%s shows a number that may be an old one", where)
			}
			for _, q := range p.Targets {
				if forged.MatchString(q.Expr) {
					t.Errorf("%s makes up a number: %s", where, q.Expr)
				}
				if err := divisors(q.Expr); err != nil {
					t.Errorf("%s: %v in %s", where, err, q.Expr)
				}
			}
		}
	}
}

var matching = regexp.MustCompile(`^(on \([^)]*\) )?(group_left \([^)]*\) )?`)

// divisors looks at what is divided by: a number, or something in parentheses that ends with > 0.
func divisors(expr string) error {
	for rest := expr; ; {
		_, after, more := strings.Cut(rest, " / ")
		if !more {
			return nil
		}
		rest = after
		by := matching.ReplaceAllString(after, "")
		if strings.HasPrefix(by, "3600") {
			continue
		}
		if !strings.HasPrefix(by, "(") || !strings.HasSuffix(by[:closing(by)], " > 0") {
			return fmt.Errorf("something is divided by what may be 0: %.60s", by)
		}
	}
}

// closing finds the parenthesis that closes the first one.
func closing(s string) int {
	depth := 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

func TestDivisorsAreFound(t *testing.T) {
	for expr, fine := range map[string]bool{
		"a / (b > 0)":                             true,
		"(a) / 3600":                              true,
		"a / on () group_left () (sum(b) > 0)":    true,
		"a / b":                                   false,
		"a / (b)":                                 false,
		"a / (b > 0) + c / (d + (e > 0))":         false,
		"sum(a) / (sum(b) + (sum(c) > 0) / (d))":  false,
		"topk(10, sum by (x) (a) / (sum(b) > 0))": true,
	} {
		if err := divisors(expr); (err == nil) != fine {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// Panels fill the 24 columns of each line, and none lies upon another.
func TestPanelsFillTheirLines(t *testing.T) {
	for _, b := range boards() {
		wide := map[int]int{}
		for _, p := range pictures(t, b.file) {
			if p.GridPos.X != wide[p.GridPos.Y] {
				t.Errorf("%s, %s: begins in column %d, where %d is free", b.file, p.Title, p.GridPos.X, wide[p.GridPos.Y])
			}
			wide[p.GridPos.Y] += p.GridPos.W
		}
		for y, w := range wide {
			if w != 24 {
				t.Errorf("%s: the line at %d has %d columns", b.file, y, w)
			}
		}
	}
}

package view

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
)

func TestWillNotHelpStaysShort(t *testing.T) {
	var r analysis.Result
	for _, x := range [][2]string{{"a", "one"}, {"b", "two"}, {"c", "one"}, {"d", "three"}, {"e", "four"}, {"f", "five"}, {"g", "one"}, {"h", "six"}} {
		r.NoHelp = append(r.NoHelp, analysis.NoHelp{ID: x[0], Title: x[0], Reason: x[1]})
	}
	got := strings.Join(inShort(noHelp(&r)), " · ")
	if want := "a, c, g (one) · b (two) · d (three) · e (four) · and 2 more, listed in the report"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

package view

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

func TestARankThatLeftIsToldOnTheFirstScreen(t *testing.T) {
	rank := func(n int, ended string, early float64) analysis.Rank {
		return analysis.Rank{Rank: n, Steps: 100 + n, Ended: ended, EndedEarlySeconds: unit.Some(early)}
	}
	for _, tt := range []struct {
		ranks []analysis.Rank
		want  string
	}{
		{[]analysis.Rank{rank(0, "normally", 0), rank(1, "normally", 30)}, ""}, // it was done
		{[]analysis.Rank{rank(0, "killed", 0), rank(1, "killed", 0.6)}, ""},    // together, as far as one can see
		{[]analysis.Rank{rank(0, "normally", 0), rank(1, "unknown", 12.4)}, "Rank 1 after step 101, 12.4 s before the others. It did not say why."},
		{[]analysis.Rank{rank(0, "killed", 9), rank(1, "killed", 8), rank(2, "killed", 7), rank(3, "killed", 6), rank(4, "killed", 5), rank(5, "normally", 0)}, "; and 2 more."},
	} {
		got := strings.ReplaceAll(leftEarly(tt.ranks), nbsp, " ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

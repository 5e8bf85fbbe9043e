package view

import (
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func about(value, half float64) analysis.Est {
	return unit.Some(stat.Estimate{Value: value, Low: value - half, High: value + half, N: 9, Grade: stat.GradeA})
}

// Both numbers of a row stand in one unit where that is readable, and the change says how the second differs from the first.
func TestARowReadsAsOneWouldSayIt(t *testing.T) {
	for _, c := range []struct {
		unit                  string
		before, after, diff   analysis.Est
		ratio                 analysis.Est
		wantBefore, wantAfter string
		change                string
	}{
		{"seconds", about(0.1, 0.005), about(0.033, 0.001), about(0, 1), about(0.33, 0.02), "100 ms (95–105 ms)", "33.0 ms (32.0–34.0 ms)", "−67 % (−69 to −65 %)"},
		{"seconds", about(1.2, 0.1), about(0.4, 0.1), about(0, 1), about(1.0/3, 0.05), "1.20 s (1.10–1.30 s)", "0.400 s (0.300–0.500 s)", "−67 % (−72 to −61 %)"},
		{"seconds", about(7200, 36), about(5400, 36), about(0, 1), about(0.75, 0.01), "2.00 h (1.99–2.01 h)", "1.50 h (1.49–1.51 h)", "−25 % (−26 to −24 %)"},
		{"ratio", about(0.24, 0.02), about(0.66, 0.02), about(0.42, 0.03), about(2.75, 0.3), "24 % (22–26 %)", "66 % (64–68 %)", "+42 points (+39 to +45 points)"},
		{"per_second", about(10, 0.2), about(31, 1), about(21, 1), about(3.1, 0.1), "10.0 (9.8–10.2)", "31.0 (30.0–32.0)", "3.1× (3.0–3.2×)"},
		{"count", about(24000, 0), about(7.83, 0), about(0, 1), about(0.000326, 0), "24,000", "7.83", "−99 %"},
		{"count", about(16, 0), about(16, 0), about(0, 0), about(1, 0), "16.0", "16.0", "none"},
		{"bytes", about(0, 0), about(3<<20, 0), about(0, 1), unit.None[stat.Estimate]("an interval reaches zero"), "0 MiB", "3.00 MiB", "unknown"},
		{"gpu_hours", about(1, 0.1), about(0.05, 0.001), about(0, 1), about(0.05, 0.01), "60.0 min (54.0–66.0 min)", "3.00 min (2.94–3.06 min)", "−95 % (−96 to −94 %)"},
	} {
		r := compareRow(&compare.Comparison{}, compare.Row{ID: "x", Unit: c.unit, Before: c.before, After: c.after, Difference: c.diff, Ratio: c.ratio, Outcome: compare.Better})
		if got := plainText(r.Before.WithRange()); got != c.wantBefore {
			t.Errorf("before: %q, want %q", got, c.wantBefore)
		}
		if got := plainText(r.After.WithRange()); got != c.wantAfter {
			t.Errorf("after: %q, want %q", got, c.wantAfter)
		}
		if got := plainText(r.Change.WithRange()); got != c.change {
			t.Errorf("%s to %s: %q, want %q", c.wantBefore, c.wantAfter, got, c.change)
		}
	}
}

package gate

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// result has a data wait of 0.3 unless it is negative, and two verdicts.
func result(wait float64) *analysis.Result {
	r := &analysis.Result{Verdicts: []analysis.Verdict{
		{ID: "storage-latency", Share: unit.Some(0.25)},
		{ID: "hook-not-loaded"},
	}}
	if wait >= 0 {
		r.Step.DataWaitShare = unit.Some(stat.Estimate{Value: wait})
	}
	return r
}

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		list  string
		wait  float64
		found int
		err   string
	}{
		{"", 0.3, 0, ""},
		{"30%", 0.3, 1, ""},
		{"0.3", 0.3, 1, ""},
		{"30 %", 0.2999, 0, ""},
		{"31%", 0.3, 0, ""},
		{"30%", -1, 0, "not known"},
		{"storage-latency", 0, 1, ""},
		{"storage-latency=25%", 0, 1, ""},
		{"storage-latency=26%", 0, 0, ""},
		{"hook-not-loaded", -1, 1, ""},
		{"hook-not-loaded=10%", 0, 0, "no share"},
		{"copy", 0.3, 0, ""},
		{" 10% , storage-latency,", 0.3, 2, ""},
	} {
		g, err := Parse(tt.list)
		if err != nil {
			t.Errorf("%q: %v", tt.list, err)
			continue
		}
		found, err := g.Findings(result(tt.wait))
		if len(found) != tt.found {
			t.Errorf("%q of %v: %v, want %d", tt.list, tt.wait, found, tt.found)
		}
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q of %v: error %v, want %q", tt.list, tt.wait, err, tt.err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{"storage", "0", "-5%", "101%", "30%%", "copy=", "copy=x", "copy=0%", "NaN", "Inf%"} {
		if g, err := Parse(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, g)
		}
	}
}

package gate

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func row(id string, before, after float64, o compare.Outcome) compare.Row {
	e := func(v float64) analysis.Est { return unit.Some(stat.Exact(v).Estimate(9, stat.GradeA, "clock")) }
	return compare.Row{ID: id, Before: e(before), After: e(after), Outcome: o, Why: "not measured"}
}

// The step became 10 % slower, the wait went from nothing to 0.2, the epoch is not comparable.
func TestWhatBecameWorseIsFound(t *testing.T) {
	c := &compare.Comparison{Rows: []compare.Row{row("step_seconds", 1, 1.1, compare.Worse), row("data_wait_share", 0, 0.2, compare.Worse),
		row("sm_active_ratio", 0.5, 0.6, compare.Better), row("epoch_seconds", 1, 2, compare.NotComparable)}}
	for list, want := range map[string]string{
		"": "", "worse": "step_seconds data_wait_share", "worse=5%": "step_seconds data_wait_share", "worse=15%": "data_wait_share", "step_seconds": "step_seconds",
		"step_seconds=20%": "", "sm_active_ratio": "", "worse,step_seconds": "step_seconds data_wait_share", "epoch_seconds": "error", "worse,epoch_seconds": "step_seconds data_wait_share error",
	} {
		g, err := ParseComparison(list)
		if err != nil {
			t.Fatal(err)
		}
		found, err := g.Findings(c)
		var got []string
		for _, s := range found {
			id, _, _ := strings.Cut(s, " ")
			got = append(got, id)
		}
		if err != nil {
			got = append(got, "error")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v; want %s", list, found, err, want)
		}
	}
}

func TestWhatIsNoRowIsRefused(t *testing.T) {
	for _, list := range []string{"30%", "storage-latency", "worse=0", "step_seconds=200%", "step_seconds="} {
		if g, err := ParseComparison(list); err == nil {
			t.Errorf("%q is %+v", list, g)
		}
	}
}

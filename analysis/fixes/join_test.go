package fixes

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stage"
)

// joined is a split of a batch of which so much of the computing, and of the waiting, is joining.
func joined(on, off, waits float64) *stage.Split {
	var t stage.Tree
	t.Add([]string{"train.py:join"}, on*(1-waits), off*waits, 0, int(1000*(on*(1-waits)+off*waits)))
	t.Add([]string{"train.py:Rows.__getitem__"}, (1-on)*(1-waits), (1-off)*waits, 0, 1000-int(1000*(on*(1-waits)+off*waits)))
	s, ok := stage.Of(&t)
	if !ok {
		panic("no split")
	}
	return &s
}

// TestFeaturesJoinedOnce: of 100 ms of CPU on two cores nine tenths are joins: 50 ms a step become 11 with C and a hand-off (F42).
func TestFeaturesJoinedOnce(t *testing.T) {
	j := scenario.Job{W: 2, K: 2, Burn: 0.1, Device: 0.010, Floor: 0.001, Solo: true}
	of := func(j scenario.Job, inside *stage.Split) (Fix, bool) {
		return find(rank(j, func(p *loader.Parameters) { p.Inside = inside }), PrecomputeFeatures)
	}
	f, ok := of(j, joined(0.9, 0, 0))
	step := f.Predicted.StepSeconds.Or(zero)
	if !ok || math.Abs(step.Value-0.011) > 0.0005 || !strings.Contains(f.How, "(here: train.py:join)") || f.Recipe != "examples/recipes/preprocess_once.py" {
		t.Errorf("%v %+v", step, f)
	}
	half, _ := of(j, joined(0.5, 0, 0))
	if got := half.Predicted.StepSeconds.Or(zero).Value; math.Abs(got-0.025) > 0.001 {
		t.Errorf("half of it: %v", got)
	}
	if f, ok := of(j, joined(0.02, 0, 0)); ok {
		t.Errorf("hardly any join: %+v", f)
	}
	if f, ok := of(j, nil); ok {
		t.Errorf("nobody looked: %+v", f)
	}
	lookups := scenario.Job{W: 2, K: 2, Burn: 0.02, Sleep: 0.08, Device: 0.010, Floor: 0.001, Solo: true}
	f, ok = of(lookups, joined(0.5, 1, 0.8))
	if got := f.Predicted.StepSeconds.Or(zero).Value; !ok || math.Abs(got-0.011) > 0.0005 || !strings.Contains(strings.Join(f.Assumes, " "), "is waited for in joins") {
		t.Errorf("joins that wait: %v %+v", got, f)
	}
}

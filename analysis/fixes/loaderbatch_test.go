package fixes

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/probe/unit"
)

// TestSmallerLoaderBatch: epochs of six batches that take 2 s to build, W = 4, C = 0.5 s: 2 s + 6 × 0.501 s. Four parts of 0.5 s are there
// after half a second, so an epoch takes 1.5 s less, and 6 × 3 more hand-offs of a millisecond.
func TestSmallerLoaderBatch(t *testing.T) {
	job := scenario.Job{W: 4, K: 4, Sleep: 2, Device: 0.5, Floor: 0.001, Solo: true, Batches: 6, Epochs: 5, Persistent: true}
	of := func(job scenario.Job, size int) (Fix, bool) {
		return find(rank(job, func(p *loader.Parameters) { p.Args.BatchSize = unit.Some(size) }), SmallerLoaderBatch)
	}
	f, ok := of(job, 64)
	want := (1.5 - 18*0.001) / (2 + 6*0.501)
	if got := f.Predicted.StepSavedShare.Or(zero).Value; !ok || math.Abs(got-want) > 0.01 || !strings.Contains(f.How, "batch_size=16)") {
		t.Errorf("saves %v, want %v: %+v", got, want, f)
	}
	if f, _ := of(job, 6); !strings.Contains(f.How, "batch_size=2), and torch.cat of 3") {
		t.Errorf("six samples are three parts of two: %q", f.How)
	}
	full := job // the cores build one part after the other, whatever they are
	full.Sleep, full.Burn, full.K = 0, 2, 1
	for name, c := range map[string]struct {
		job  scenario.Job
		size int
	}{
		"an odd batch":      {job, 61},
		"a long epoch":      {scenario.Job{W: 4, K: 4, Sleep: 2, Device: 0.5, Floor: 0.001, Solo: true, Batches: 1000, Epochs: 5, Persistent: true}, 64},
		"full cores":        {full, 64},
		"one epoch only":    {scenario.Job{W: 4, K: 4, Sleep: 2, Device: 0.5, Floor: 0.001, Solo: true, Batches: 6, Epochs: 1}, 64},
		"hand-offs cost it": {scenario.Job{W: 4, K: 4, Sleep: 0.02, Device: 0.005, Floor: 0.004, Solo: true, Batches: 6, Epochs: 5, Persistent: true}, 64},
	} {
		if f, ok := of(c.job, c.size); ok {
			t.Errorf("%s: %+v", name, f.Predicted)
		}
	}
}

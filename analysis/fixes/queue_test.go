package fixes

import (
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/replay"
	"github.com/datawait/datawait/analysis/loader/scenario"
)

// heavyTail is F38 as examples/lab has it: 8 ms a batch, 408 ms one batch in twenty (28 ms on average), W = 3, C = 20 ms.
//
// Before the slow batch is asked for, six batches are ahead of it at most: a wait of some 0.408 − 5 × 0.02 = 0.3 s in every twenty steps,
// 35 ms a step.
func heavyTail() loader.Parameters {
	p := scenario.Job{W: 3, K: 2, Sleep: 0.028, Device: 0.020, Floor: 0.0011, Solo: true}.Parameters()
	for i := range 200 {
		times := float32(8.0 / 28)
		if i%20 == 7 {
			times = 408.0 / 28
		}
		p.Tape = append(p.Tape, replay.Batch{Wait: times, CPU: 1, Outside: 1})
	}
	p.Batch.CV = some(3.0)
	p.Step.Seconds, p.Step.Wait = exact(0.0355), exact(0.0155)
	return p
}

// TestHeavyTail: twelve batches ahead still run out while one takes 0.4 s (0.408 − 11 × 0.021 = 0.18 s, 30 ms a step), twenty-four last: the
// longer queue is as good as any change can be, and costs neither a worker nor PyTorch 2.6.
func TestHeavyTail(t *testing.T) {
	r := advise(heavyTail())
	if len(r.Fixes) == 0 || r.Fixes[0].ID != PrefetchFactor || r.Fixes[0].How != "DataLoader(..., num_workers=3, prefetch_factor=8)" {
		t.Fatalf("%v (%s)", ids(r), r.Reason)
	}
	if got := r.Fixes[0].Predicted.StepSeconds.Or(zero).Value; math.Abs(got-0.0211) > 0.001 {
		t.Errorf("a step of %.1f ms", 1e3*got)
	}
	workers, ok := find(r, MoreWorkers)
	if !ok || workers.Predicted.StepSeconds.Or(zero).Value < 0.023 {
		t.Errorf("more workers: %+v", workers.Predicted.StepSeconds)
	}
}

// TestOutOfOrderNeedsItsArgument: where the loader has no in_order, a longer queue that wins as much comes first.
func TestOutOfOrderNeedsItsArgument(t *testing.T) {
	for _, c := range []struct {
		known  bool
		effort string
	}{{true, "one argument"}, {false, "a setting of the job"}} {
		p := heavyTail()
		if c.known {
			p.Args.InOrder = someBool(true)
		}
		r := advise(p)
		f, ok := find(r, OutOfOrder)
		if !ok || f.Effort != c.effort || !c.known && r.Fixes[0].ID != PrefetchFactor {
			t.Errorf("%v: %s, %v", c.known, f.Effort, ids(r))
		}
	}
}

// TestPrefetchStops: a queue no longer than what wins something.
func TestPrefetchStops(t *testing.T) {
	for _, c := range []struct {
		slow float32 // a batch in twenty takes as long, of the mean
		want int
	}{{3, 4}, {14.6, 8}} {
		p := heavyTail()
		rest := (20 - c.slow) / 19
		for i := range p.Tape {
			p.Tape[i].Wait = rest
			if i%20 == 7 {
				p.Tape[i].Wait = c.slow
			}
		}
		m := loader.New(p)
		j := newJob(m)
		if got := j.longEnough(j.now); got != c.want {
			t.Errorf("%v: prefetch_factor=%d, want %d", c.slow, got, c.want)
		}
	}
}

// TestCoresWithoutWorkers: one worker on the 1.9 of 2 cores that other work leaves is too few workers, not too few cores (S05 at W = 1).
func TestCoresWithoutWorkers(t *testing.T) {
	for _, c := range []struct {
		workers int
		usable  float64
		limited bool
	}{{1, 1.9, false}, {1, 2, false}, {2, 1.9, true}, {2, 2, true}, {2, 2.9, false}, {1, 1, true}} {
		job := scenario.S05(c.workers)
		job.K, job.Online = c.usable, 4
		_, ok := find(advise(job.Parameters()), CPULimit)
		if ok != c.limited {
			t.Errorf("%d workers on %v cores: cpu-limit %v", c.workers, c.usable, ok)
		}
	}
}

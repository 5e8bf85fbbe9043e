package loader

import (
	"math"
	"testing"
)

// TestLaw holds the law against the arithmetic of the scenarios.
func TestLaw(t *testing.T) {
	inf := math.Inf(1)
	law := func(w int, off, cpu, c, shared, k float64) Law {
		return Law{Workers: w, Fetches: 1, Compute: c, Outside: c, Off: off, CPU: cpu, Work: cpu, Shared: shared, WorkerCores: k, JobCores: inf}
	}
	for _, c := range []struct {
		name string
		law  Law
		step float64
		by   Bottleneck
	}{
		{"S01 no workers", law(0, 40, 0, 20, 0, 2), 60, ByWorkers},
		{"S01 two workers", law(2, 40, 0, 20, 0, 2), 20, ByCompute},
		{"S02 one worker", law(1, 40, 0, 15, 0, 2), 40, ByWorkers},
		{"S02 two workers", law(2, 40, 0, 15, 0, 2), 20, ByWorkers},
		{"S02 three workers", law(3, 40, 0, 15, 0, 2), 15, ByCompute},
		{"S03 shared link", law(8, 32, 0, 12, 32, 2), 32, ByShared},
		{"S05 one worker", law(1, 0, 48, 10, 0, 2), 48, ByWorkers},
		{"S05 cores full", law(8, 0, 48, 10, 0, 2), 24, ByCores},
		{"S06 some latency", law(2, 8, 48, 12, 0, 2), 28, ByWorkers},
		{"S09 one core", law(4, 0, 24, 13, 0, 1), 24, ByCores},
		{"S10 slow collate", law(2, 4, 40, 12, 0, 2), 22, ByWorkers},
		{"S26 control", law(2, 8, 0, 40, 0, 2), 40, ByCompute},
		{"S26 marginal", law(1, 105, 0, 100, 0, 2), 105, ByWorkers},
	} {
		if got := c.law.Bound(); math.Abs(got-c.step) > 1e-9 {
			t.Errorf("%s: step %v, want %v", c.name, got, c.step)
		}
		if got := c.law.Binding(); got != c.by {
			t.Errorf("%s: bound by %s, want %s", c.name, got, c.by)
		}
	}
}

// TestEnough: the smallest W with L/W ≤ max(C, shared, B/K).
func TestEnough(t *testing.T) {
	for _, c := range []struct {
		off, cpu, compute, shared, k float64
		want                         int
	}{
		{40, 0, 15, 0, 2, 3},
		{40, 0, 20, 0, 2, 2},
		{0, 48, 10, 0, 2, 2}, // cores bind from two workers on
		{105, 0, 100, 0, 2, 2},
		{32, 0, 12, 32, 2, 1}, // one worker keeps the link busy
		{4, 40, 12, 0, 2, 3},  // 44/3 < 20 = B/K
	} {
		l := Law{Workers: 1, Fetches: 1, Compute: c.compute, Off: c.off, CPU: c.cpu, Work: c.cpu, Shared: c.shared, WorkerCores: c.k, JobCores: math.Inf(1)}
		if got, _ := l.Enough(0); got != c.want {
			t.Errorf("%+v: %d workers", c, got)
		}
	}
	if _, ok := (Law{Fetches: 1, Compute: 1}).Enough(0); ok {
		t.Error("a build of no time needs no number of workers")
	}
}

// TestAccumulation: four batches per step are four builds and four hand-offs per step.
func TestAccumulation(t *testing.T) {
	l := Law{Workers: 2, Fetches: 4, Compute: 40, Handoff: 1, Off: 30, WorkerCores: math.Inf(1), JobCores: math.Inf(1)}
	if got := l.Bound(); got != 60 {
		t.Errorf("4 × 30 / 2 = %v", got)
	}
	l.Workers = 8
	if got := l.Bound(); got != 44 {
		t.Errorf("40 + 4 × 1 = %v", got)
	}
}

// TestHostFills: where the training process fills a compute-bound step, it is named.
func TestHostFills(t *testing.T) {
	l := Law{Workers: 2, Fetches: 1, Compute: 40, Host: 25, Off: 8, WorkerCores: 2, JobCores: 2, MainCPU: 25}
	if got := l.Binding(); got != ByMain {
		t.Errorf("S21 is bound by %s", got)
	}
	l.Host, l.Copy = 0, 20
	if got := l.Binding(); got != ByCompute {
		t.Errorf("S23 is bound by %s", got)
	}
}

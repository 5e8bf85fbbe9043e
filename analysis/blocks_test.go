package analysis

import (
	"fmt"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/probe/recording"
)

// plan alternates live and host-cached blocks, and ends with the other legs.
func plan(pairs int, more ...recording.Leg) (legs []recording.Leg) {
	for range pairs {
		legs = append(legs, recording.LegLive, recording.LegHostCached)
	}
	return append(legs, more...)
}

func ceilingOf(t *testing.T, r *Result) (value, low, high float64) {
	t.Helper()
	if r.Baseline == nil {
		t.Fatal("no baseline")
	}
	c, ok := r.Baseline.Ceiling.Get()
	if !ok {
		t.Fatalf("no ceiling: %s", r.Baseline.Ceiling.Why())
	}
	return c.Value, c.Low, c.High
}

// TestLaunchesAhead: whatever the depth of the device's queue, the ceiling is L/W ÷ C = 31/10.
func TestLaunchesAhead(t *testing.T) {
	for _, depth := range []int{0, 4, 64} {
		r, _ := analyse(t, simulate.Job{Epochs: 1, Steps: 5000, Workers: 2, Prefetch: 2, Build: constant(62 * ms), Compute: 10 * ms, Depth: depth,
			Host: ms / 10, SM: 0.9, Window: 100 * ms, Warm: 100, Plan: plan(4), BlockSteps: 40})
		value, low, high := ceilingOf(t, r)
		if !near(value, 3.1, 0.1) || r.Baseline.Conclusion != "input-pipeline" {
			t.Errorf("depth %d: ceiling %.3f (%.3f–%.3f), %s: %s", depth, value, low, high, r.Baseline.Conclusion, r.Baseline.Why)
		}
		live, _ := r.Baseline.Legs["live"].SMActiveRatio.Get()
		cached, _ := r.Baseline.Legs["host-cached"].SMActiveRatio.Get()
		if !near(live.Value, 0.9/3.1, 0.03) || !near(cached.Value, 0.89, 0.03) {
			t.Errorf("depth %d: SM activity %.3f live, %.3f cached", depth, live.Value, cached.Value)
		}
		if u := r.Baseline.UnexplainedShare.Or(1); !near(u, 0, 0.03) {
			t.Errorf("depth %d: unexplained %.3f", depth, u)
		}
		if !r.Job.Throwaway || r.Ranks[0].Ended != "parked" {
			t.Errorf("throwaway %v, ended %s", r.Job.Throwaway, r.Ranks[0].Ended)
		}
	}
}

// TestHostClock: the same run timed by the host alone is not believed, for launches that run ahead pass for fast steps.
func TestHostClock(t *testing.T) {
	r, _ := analyse(t, simulate.Job{Epochs: 1, Steps: 5000, Workers: 2, Prefetch: 2, Build: constant(62 * ms), Compute: 10 * ms, Depth: 64,
		Host: ms / 10, SM: 0.9, Window: 100 * ms, Warm: 100, Plan: plan(4), BlockSteps: 40, Unsynced: true})
	c, _ := r.Baseline.Ceiling.Get()
	if c.Grade != "C" || r.Baseline.Conclusion != "inconclusive" {
		t.Errorf("ceiling %+v, %s", c, r.Baseline.Conclusion)
	}
}

// TestDeepQueues: after a cached block the loader's queue is full. The true gains are found all the same; a fixed number of
// discarded steps had hidden them.
func TestDeepQueues(t *testing.T) {
	tests := []struct {
		workers        int
		build, compute int64
	}{
		{8, 180, 20}, {16, 400, 20}, {1, 105, 100}, {4, 60, 20},
	}
	for _, test := range tests {
		truth := max(1, float64(test.build)/float64(test.workers)/float64(test.compute))
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			r, _ := analyse(t, simulate.Job{Epochs: 1, Steps: 50000, Workers: test.workers, Prefetch: 2, Build: constant(test.build * ms),
				Compute: test.compute * ms, Depth: 1, Host: ms / 10, SM: 0.9, Window: 100 * ms, Warm: 20 * test.workers, Plan: plan(4), BlockSteps: 10 * test.workers})
			value, low, high := ceilingOf(t, r)
			if !near(value, truth, 0.02*truth) {
				t.Errorf("ceiling %.3f (%.3f–%.3f), want %.3f", value, low, high, truth)
			}
			want := "not-input"
			if truth > 1.02 {
				want = "input-pipeline"
			}
			if r.Baseline.Conclusion != want {
				t.Errorf("%s: %s", r.Baseline.Conclusion, r.Baseline.Why)
			}
		})
	}
}

// TestLegs: a step is 3 ms of copying and 10 ms of computing, which busy workers make 20 % longer.
func TestLegs(t *testing.T) {
	r, _ := analyse(t, simulate.Job{Epochs: 1, Steps: 5000, Workers: 2, Prefetch: 2, Build: constant(62 * ms), Compute: 10 * ms, Copy: 3 * ms,
		Contention: 0.2, Depth: 1, Host: ms / 10, SM: 0.9, Window: 100 * ms, Warm: 100, BlockSteps: 40,
		Plan: plan(3, recording.LegLive, recording.LegHostCachedBusy, recording.LegLive, recording.LegHostCachedBusy, recording.LegLive, recording.LegDeviceCached)})
	b := r.Baseline
	const live = 31.0
	if copy := b.CopyShare.Or(-1); !near(copy, 3/live, 0.01) {
		t.Errorf("copy share %.3f, want %.3f", copy, 3/live)
	}
	if i := b.InterferenceShare.Or(-1); !near(i, 2/live, 0.01) {
		t.Errorf("interference share %.3f, want %.3f", i, 2/live)
	}
	if u := b.UnexplainedShare.Or(-1); !near(u, 0, 0.02) {
		t.Errorf("unexplained share %.3f", u)
	}
}

// TestLedgerLeavesTestOut: cached blocks show a busy GPU that no live run has. They are not part of the allocation.
func TestLedgerLeavesTestOut(t *testing.T) {
	r, truth := analyse(t, simulate.Job{Epochs: 1, Steps: 5000, Workers: 2, Prefetch: 2, Build: constant(62 * ms), Compute: 10 * ms, Depth: 1,
		Host: ms / 10, SM: 0.9, Window: 100 * ms, Warm: 100, Plan: plan(4), BlockSteps: 40})
	g := r.GPUs[0]
	// 100 warm steps and four live blocks of 40, 31 ms each, after 0.2 s of start-up and a first build.
	if want := 0.26 + 260*0.031; !near(float64(g.AllocatedNS)/1e9, want, 0.2) {
		t.Errorf("allocated %.2f s of %.2f, want %.2f", float64(g.AllocatedNS)/1e9, float64(truth.End-truth.Begin)/1e9, want)
	}
	if resident := g.ResidentRatio.Or(0); !near(resident, 10/31.0, 0.03) {
		t.Errorf("resident %.3f, want %.3f: the test's own steps leak into it", resident, 10/31.0)
	}
	share, _ := r.Step.ExposedWaitShare.Get()
	if !near(share.Value, 21/31.0, 0.03) {
		t.Errorf("exposed wait share %+v, want %.3f", share, 21/31.0)
	}
	sum := int64(0)
	for _, ns := range g.AccountsNS {
		sum += ns
	}
	if sum != g.AllocatedNS {
		t.Errorf("accounts sum to %d of %d", sum, g.AllocatedNS)
	}
}

// TestStraggler: ranks wait for one another, and one of them waits for data. Nothing of that is unexplained.
func TestStraggler(t *testing.T) {
	j := simulate.Job{Epochs: 1, Steps: 5000, Workers: 2, Prefetch: 2, Build: constant(62 * ms), Compute: 10 * ms, Host: ms / 10, SM: 0.9, Window: 100 * ms,
		Warm: 100, Plan: plan(4), BlockSteps: 40}
	slow, _ := j.Play()
	x := newTape(t)
	for number := range 2 {
		id := x.rank(10+number, number)
		_ = slow.Scan(func(from recording.StreamID, records []recording.Record) error {
			for _, r := range records {
				if from != 2 { // of the training process only
					continue
				}
				if b := r.Block(); r.Kind() == recording.KindBlock && number == 0 {
					b.Wait = 0 // rank 0 has its batches at once, and waits for rank 1 in the step
					r = b.Encode()
				}
				if e := r.Exposed(); r.Kind() == recording.KindExposed && number == 0 {
					e.Idle = 0
					r = e.Encode()
				}
				x.write(id, r)
			}
			return nil
		})
	}
	r := x.run()
	if u := r.Baseline.UnexplainedShare.Or(1); !near(u, 0, 0.03) {
		t.Errorf("unexplained %.3f", u)
	}
	if r.Baseline.Conclusion != "input-pipeline" {
		t.Errorf("%s: %s", r.Baseline.Conclusion, r.Baseline.Why)
	}
}

// TestWhatIsNoTrainingMakesABlockVoid: time in a save or a validation counts for no leg, and a block that is void for one rank is void
// for all: the others wait for it.
func TestWhatIsNoTrainingMakesABlockVoid(t *testing.T) {
	for _, test := range []struct {
		name       string
		code       recording.MarkCode
		begin, end float64
		want       string
	}{
		{"a save inside", recording.MarkCheckpoint, 150, 160, "1 of 2 blocks: a checkpoint was saved inside the block"},
		{"a save on another thread around it", recording.MarkCheckpoint, 50, 250, "1 of 2 blocks: a checkpoint was saved inside the block"},
		{"a validation that ends inside", recording.MarkValidation, 50, 101, "1 of 2 blocks: another loop ran inside the block"},
		{"a save before", recording.MarkCheckpoint, 50, 100, ""},
		{"a save after", recording.MarkCheckpoint, 200, 290, ""},
		{"an instant that is no time", recording.MarkCUDA, 150, 150, ""},
	} {
		x := newTape(t)
		ranks := []recording.StreamID{x.rank(10, 0), x.rank(11, 1)}
		for _, id := range ranks {
			x.fetch(id, 0, 0, 0, 1, 2)
			for i, leg := range plan(2) {
				from := 100 + 1000*float64(i/2) + 200*float64(i%2)
				x.write(id, recording.Block{Ref: uint16(leg), Begin: at(from), End: at(from + 100), Block: uint32(i + 1), Steps: 10, Fetches: 10}.Encode())
			}
		}
		x.write(ranks[1], recording.Mark{Ref: uint16(test.code), Begin: at(test.begin), End: at(test.end)}.Encode())
		b := x.run().Baseline
		got := ""
		for _, s := range b.Skipped {
			got += s.Reason
		}
		if live := b.Legs["live"].Blocks; got != test.want || live != 2-min(1, len(test.want)) {
			t.Errorf("%s: %d live blocks, %q; want %q", test.name, live, got, test.want)
		}
	}
}

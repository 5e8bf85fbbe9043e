package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// starved is the job of two shards for four workers: L = 40 ms, C = 11 ms.
var starved = scenario.Job{W: 2, K: 2, Sleep: 0.040, Device: 0.011, Floor: 0.001, Solo: true}

// TestAround: what lies around steady steps.
func TestAround(t *testing.T) {
	for _, c := range []struct {
		name   string
		job    scenario.Job
		around func(*loader.Parameters)
		want   []string
	}{
		{"a save every 25 steps (S27a)", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 8, Seconds: 0.6, Every: 25, Regular: true, PerStep: 0.024, Share: 0.37, Saves: 8}
		}, []string{PeriodicStall, ComputeBound}},
		{"stalls at no regular distance", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 8, Seconds: 0.6, Every: 25, PerStep: 0.024, Share: 0.37}
		}, []string{ComputeBound}},
		{"every other step, of no known cause", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 30, Seconds: 0.09, Every: 2, Regular: true, PerStep: 0.024, Share: 0.37}
		}, []string{ComputeBound}},
		{"stalls that cost little", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 8, Seconds: 0.06, Every: 100, Regular: true, PerStep: 0.0006, Share: 0.015}
		}, []string{ComputeBound}},
		{"rank 1 waits, rank 0 does not (S28)", scenario.Job{W: 2, K: 2, Sleep: 0.08, Device: 0.02, Floor: 0.001, Solo: true}, func(p *loader.Parameters) {
			p.Around.Straggler = loader.Straggler{Rank: 1, Ranks: 2, Wait: 0.5, Others: 0.03, Build: unit.Some(0.2)}
		}, []string{RankStraggler, TooFewWorkers}},
		{"both ranks wait", scenario.Job{W: 2, K: 2, Sleep: 0.08, Device: 0.02, Floor: 0.001, Solo: true}, func(p *loader.Parameters) {
			p.Around.Straggler = loader.Straggler{Rank: 1, Ranks: 2, Wait: 0.5, Others: 0.48, Build: unit.Some(1.0)}
		}, []string{TooFewWorkers}},
		{"two shards, four workers (F48)", starved, func(p *loader.Parameters) {
			p.Args.Workers, p.Around.Stream = 4, loader.Stream{Workers: 4, Delivering: 2}
		}, []string{StarvedWorkers}},
		{"every worker reads all (S18)", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stream = loader.Stream{Workers: 4, Delivering: 4, Declared: 20, Delivered: 80}
		}, []string{DuplicateData, ComputeBound}},
		{"a divided stream, rounded up in each worker", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stream = loader.Stream{Workers: 4, Delivering: 4, Declared: 3, Delivered: 7}
		}, []string{ComputeBound}},
		{"a cold first epoch (S12)", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Cold = loader.Cold{Times: 8, Seconds: 1.6, Share: 0.2}
		}, []string{ColdCache, ComputeBound}},
		{"a cold first epoch, long ago", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Cold = loader.Cold{Times: 8, Seconds: 1.6, Share: 0.01}
		}, []string{ComputeBound}},
		{"later epochs read from the disk (F34)", scenario.S02(1), func(p *loader.Parameters) {
			p.Around.Again = loader.Again{Read: unit.Some(1e6), FromDisk: unit.Some(9e5)}
		}, []string{TooFewWorkers, CacheThrash}},
		{"row groups for rows (F47)", scenario.S02(1), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.Bytes = unit.Some(8e6), unit.Some(1.3e5)
		}, []string{ReadAmplification, TooFewWorkers}},
		{"compressed samples", scenario.S02(1), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.Bytes = unit.Some(8e6), unit.Some(8e6)
		}, []string{TooFewWorkers}},
		{"one lock around what memory holds (F46)", scenario.S03(4), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.FromDisk, p.Batch.Bytes = unit.Some(5e5), unit.Some(0.0), unit.Some(5e5)
		}, []string{SerialRead}},
		{"one disk", scenario.S03(4), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.FromDisk, p.Batch.Bytes = unit.Some(5e5), unit.Some(5e5), unit.Some(5e5)
		}, []string{StorageBandwidth}},
		{"workers that grow (S30)", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Growth = loader.Growth{Workers: 2, PerBatch: 2.6e5, Rate: 1.3e7, Left: unit.Some(2e10)}
		}, []string{MemoryGrowth, ComputeBound}},
		{"workers that grow slowly", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Growth = loader.Growth{Workers: 2, PerBatch: 2.6e2, Rate: 1.3e4, Left: unit.Some(2e10)}
		}, []string{ComputeBound}},
		{"a copy that may be none", scenario.S26(), func(p *loader.Parameters) {
			p.Step.Copy = unit.Some(stat.Estimate{Value: 0.003, Low: 0, High: 0.006, N: 20, Grade: stat.GradeB})
		}, []string{ComputeBound}},
		{"a heavy tail (F38)", scenario.Job{W: 3, K: 2, Sleep: 0.028, Device: 0.020, Floor: 0.001, Solo: true}, func(p *loader.Parameters) {
			p.Step.Seconds, p.Step.Wait, p.Batch.CV = exact(0.035), exact(0.015), unit.Some(3.0)
		}, []string{SlowTail}},
		{"a tail, and too slow on average", scenario.S02(1), func(p *loader.Parameters) { p.Batch.CV = unit.Some(3.0) }, []string{TooFewWorkers}},
	} {
		f := judge(c.job, func(_ *Facts, p *loader.Parameters) { c.around(p) })
		if got := ids(f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v (dropped %+v)", c.name, got, c.want, f.Dropped)
		}
	}
}

// TestStartIsNoIdleness: a GPU that stood ready while its job started, and on which a rank then trains, was not idle; one that waited for
// hours was.
func TestStartIsNoIdleness(t *testing.T) {
	for hours, want := range map[float64]bool{0.02: false, 5: true} {
		f := judge(scenario.S26(), func(f *Facts, _ *loader.Parameters) {
			f.GPUs = []GPU{{Held: unit.Some(0.4), Watched: 1, Hours: hours, Ranks: 1}}
		})
		if got := slices.Contains(ids(f), IdleAllocated); got != want {
			t.Errorf("not held for 60 %% of %v hours: %s", hours, strings.Join(ids(f), ", "))
		}
	}
}

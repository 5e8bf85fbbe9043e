package fixes

import (
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/probe/unit"
)

// Fixes of what lies around steady steps, by arithmetic: what they save is a share of all the time, stalls included.
func TestAround(t *testing.T) {
	ddp := scenario.Job{W: 2, K: 2, Sleep: 0.080, Device: 0.020, Floor: 0.001, Solo: true}
	few := scenario.Job{W: 2, K: 2, Sleep: 0.040, Device: 0.011, Floor: 0.001, Solo: true}
	for _, c := range []struct {
		name   string
		job    scenario.Job
		around func(*loader.Parameters)
		id     string
		saved  float64 // 0 = it must not be priced
	}{
		{"a save of 0.6 s every 25 steps of 41 ms", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 8, Seconds: 0.6, Every: 25, Regular: true, PerStep: 0.024, Share: 0.37, Saves: 8}
		}, AsyncCheckpoint, 0.9 * 0.024 / (0.0411 + 0.024)},
		{"a validation of 0.45 s every 25 steps", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 8, Seconds: 0.45, Every: 25, Regular: true, PerStep: 0.018, Share: 0.3, Validation: 8}
		}, ValidationLess, 0.5 * 0.018 / (0.0411 + 0.018)},
		{"stalls of no known cause", scenario.S26(), func(p *loader.Parameters) {
			p.Around.Stalls = loader.Stalls{N: 8, Seconds: 0.45, Every: 25, Regular: true, PerStep: 0.018, Share: 0.3}
		}, ValidationLess, 0},
		{"rank 1 builds five times as long as rank 0: 40 → 21 ms", ddp, func(p *loader.Parameters) {
			p.Around.Straggler = loader.Straggler{Rank: 1, Ranks: 2, Wait: 0.5, Others: 0.03, Build: unit.Some(0.2)}
		}, FixStraggler, 1 - 0.021/0.040},
		{"rank 1 builds no longer than rank 0", ddp, func(p *loader.Parameters) {
			p.Around.Straggler = loader.Straggler{Rank: 1, Ranks: 2, Wait: 0.5, Others: 0.03, Build: unit.Some(1.1)}
		}, FixStraggler, 0},
		{"two shards, four workers: 20 → 12 ms", few, func(p *loader.Parameters) {
			p.Args.Workers, p.Around.Stream = 4, loader.Stream{Workers: 4, Delivering: 2}
		}, MoreShards, 1 - 0.012/0.020},
		{"two shards, four workers: another worker has nothing to read either", few, func(p *loader.Parameters) {
			p.Args.Workers, p.Around.Stream = 4, loader.Stream{Workers: 4, Delivering: 2}
		}, MoreWorkers, 0},
		{"one lock around what memory holds: 32 → 13.1 ms", scenario.S03(4), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.FromDisk, p.Batch.Bytes = unit.Some(5e5), unit.Some(0.0), unit.Some(5e5)
		}, PerWorkerHandles, 1 - 0.0131/0.032},
		{"one disk has no handles to part", scenario.S03(4), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.FromDisk, p.Batch.Bytes = unit.Some(5e5), unit.Some(5e5), unit.Some(5e5)
		}, PerWorkerHandles, 0},
		{"row groups of 64 rows: 40 → 16.1 ms", scenario.S02(1), func(p *loader.Parameters) {
			p.Batch.Read, p.Batch.Bytes, p.Epoch = unit.Some(8e6), unit.Some(1.25e5), loader.EpochStart{}
		}, SequentialLayout, 1 - 0.0161/0.040},
		{"all of what later epochs read comes from the disk: 40 → 16.1 ms", scenario.S02(1), func(p *loader.Parameters) {
			p.Around.Again, p.Epoch = loader.Again{Read: unit.Some(1e6), FromDisk: unit.Some(1e6)}, loader.EpochStart{}
		}, MoreRAM, 1 - 0.0161/0.040},
	} {
		p := c.job.Parameters()
		c.around(&p)
		saved := 0.0
		for _, f := range advise(p).Fixes {
			if f.ID == c.id {
				saved = f.Predicted.StepSavedShare.Or(zero).Value
			}
		}
		if d := saved - c.saved; max(d, -d) > 0.01 {
			t.Errorf("%s: %s saves %.3f, want %.3f", c.name, c.id, saved, c.saved)
		}
	}
}

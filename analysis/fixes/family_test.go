package fixes

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
)

func rank(j scenario.Job, change func(*loader.Parameters)) Ranking {
	p := j.Parameters()
	if change != nil {
		change(&p)
	}
	return advise(p)
}

// TestLimits: four limits, four instructions (F12–F15). A host of 56 cores lends the job one.
func TestLimits(t *testing.T) {
	j := scenario.Job{W: 8, K: 1, Online: 56, Burn: 0.2, Device: 0.02, Floor: 0.001, Solo: true}
	for _, c := range []struct {
		name   string
		change func(*loader.Parameters)
		how    string
	}{
		{"quota", func(p *loader.Parameters) { p.Host.Quota, p.Host.Cpuset = some(1.0), loader.Num{} }, "raise the CPU quota to 10"},
		{"slurm", nil, "ask for 10 cores (srun --cpus-per-task"},
		{"two ranks", func(p *loader.Parameters) {
			p.Host.Ranks = 2
			for _, c := range []*loader.Num{&p.Host.Quota, &p.Host.Cpuset, &p.Host.Usable} {
				*c = some(2.0)
			}
		}, "raise the CPU quota to 20"},
	} {
		r := rank(j, c.change)
		f := r.Fixes[0]
		if f.ID != CPULimit || !strings.Contains(f.How, c.how) || f.Effort != "a setting of the job" {
			t.Errorf("%s: %s, %s (%s)", c.name, f.ID, f.How, f.Effort)
		}
		if got := f.Predicted.StepSeconds.Or(zero).Value; math.Abs(got-0.021) > 0.002 {
			t.Errorf("%s: step %v", c.name, got)
		}
	}
}

// TestNoisyNeighbour: other jobs take most of the cores; the advice is to be rid of them, not a new node.
func TestNoisyNeighbour(t *testing.T) {
	j := scenario.Job{W: 4, K: 8, Burn: 0.1, Device: 0.01, Floor: 0.001, Solo: true}
	r := rank(j, func(p *loader.Parameters) {
		p.Host.Foreign, p.Step.Seconds, p.Step.Wait, p.Host.Cpuset = some(6.0), exact(0.05), exact(0.04), loader.Num{}
		p.Batch.Wall, p.Batch.RunQueue = exact(0.2), some(0.1)
	})
	f, ok := find(r, CPULimit)
	if !ok || !strings.Contains(f.How, "keep other work off this host") {
		t.Errorf("%+v (%s)", f, r.Reason)
	}
}

// TestWorkerThreads: S07, 32 threads in each of two workers on two cores; one thread each measured 13.7 for 69.5 ms. The building thread took
// 8 of 118 ms of CPU, and threads went to sleep 3465 times in a build (measured later; the parts are scaled to a step of 69.5 ms).
func TestWorkerThreads(t *testing.T) {
	j := scenario.Job{W: 2, K: 2, Burn: 0.139, Device: 0.010, Floor: 0.001, Solo: true}
	spin := func(threads int, cpu float64, sleeps loader.Num) func(*loader.Parameters) {
		return func(p *loader.Parameters) {
			p.Batch.CPU, p.Batch.ProcessCPU, p.Batch.Sleeps = exact(cpu), some(0.139), sleeps
			p.Solo.OffCPU, p.Batch.OffCPU, p.Solo.Wall = exact(0), exact(0), loader.Est{}
			p.Host.ThreadsPerWorker = some(threads)
		}
	}
	for _, c := range []struct {
		name   string
		sleeps loader.Num
		least  float64 // of the prediction
		most   float64
	}{
		{"helpers that are woken and sleep again", some(3465.0), 0.0109, 0.0137},
		{"helpers that work when they are woken", some(400.0), 0.0165, 0.0195}, // √(9.5 × 139) ÷ 2
		{"nobody counted", loader.Num{}, 0.0165, 0.0195},
	} {
		r := rank(j, spin(32, 0.0095, c.sleeps))
		if len(r.Fixes) == 0 || r.Fixes[0].ID != WorkerThreads {
			t.Errorf("%s: %v", c.name, ids(r))
			continue
		}
		step := r.Fixes[0].Predicted.StepSeconds.Or(zero)
		if !(step.Value >= c.least && step.Value <= c.most && step.Low <= 0.0137 && step.High >= 0.0555) { // four fifths of 69.5
			t.Errorf("%s: %+v", c.name, step)
		}
	}
	for name, c := range map[string]func(*loader.Parameters){"one thread": spin(1, 0.07, loader.Num{}), "threads that do nothing": spin(32, 0.139, loader.Num{})} {
		if f, ok := find(rank(j, c), WorkerThreads); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestUneven: a longer queue wins at most what the law leaves unexplained, and only where builds vary (F50).
func TestUneven(t *testing.T) {
	j := scenario.S02(4)
	slow := func(cv float64) func(*loader.Parameters) {
		return func(p *loader.Parameters) { p.Batch.CV, p.Step.Seconds = some(cv), exact(0.0175) }
	}
	r := rank(j, slow(0.8))
	if f, ok := find(r, PrefetchFactor); !ok || f.Predicted.StepSeconds.Or(zero).Low < 0.98*0.015 || // C, which is measured to 2 %
		f.How != "DataLoader(..., num_workers=4, prefetch_factor=4)" {
		t.Errorf("%v %+v", ids(r), f)
	}
	if _, ok := find(r, OutOfOrder); !ok {
		t.Errorf("%v", ids(r))
	}
	if r := rank(j, slow(0.05)); noHelp(r, PrefetchFactor) != "the queue does not run empty" {
		t.Errorf("%v: %q", ids(r), noHelp(r, PrefetchFactor))
	}
}

// TestPackBatch: 114 tensors a batch, handed over in 12 ms (F51).
func TestPackBatch(t *testing.T) {
	r := rank(scenario.S26(), func(p *loader.Parameters) {
		p.Batch.Tensors, p.Step.Handoff, p.Step.Seconds, p.Step.Wait = some(114.0), some(0.012), exact(0.052), exact(0.012)
	})
	f, ok := find(r, PackBatch)
	if got := f.Predicted.StepSeconds.Or(zero).Value; !ok || got < 0.0411 || got > 0.0425 {
		t.Errorf("%v: %v", ids(r), got)
	}
}

// TestEpochStart: what kept workers win, what a faster start wins, what a buffer costs.
func TestEpochStart(t *testing.T) {
	spawn := rank(scenario.S14(), func(p *loader.Parameters) { p.Args.StartMethod = some("spawn") })
	if f, ok := find(spawn, CheaperStart); !ok || !strings.Contains(f.How, "forkserver") {
		t.Errorf("%v %+v", ids(spawn), f)
	}
	kept := rank(scenario.S14(), func(p *loader.Parameters) { p.Args.Persistent = some(true) })
	if len(kept.Fixes) > 0 && (kept.Fixes[0].ID == PersistentWorkers || kept.Fixes[0].ID == CheaperStart) {
		t.Errorf("workers are kept already: %v", ids(kept))
	}
	// S16: 0.4 s of buffer in 60 steps of 20 ms; fork costs next to nothing.
	fill := scenario.Job{W: 2, K: 2, Sleep: 0.032, Device: 0.02, Floor: 0.0011, Solo: true, Batches: 60, Epochs: 2, WorkerStart: 0.01}
	r := rank(fill, func(p *loader.Parameters) {
		p.Args.Iterable = some(true)
		p.Epoch.Seconds, p.Epoch.FirstBuild = exact(0.01+0.4+0.032), some(0.432)
	})
	if len(r.Fixes) == 0 || r.Fixes[0].ID != SmallerShuffleBuffer {
		t.Errorf("%v (%s)", ids(r), r.Reason)
	}
}

// TestShards: many small requests on a slow store; with four a worker, packing them beats more workers.
func TestShards(t *testing.T) {
	j := scenario.Job{W: 4, K: 4, Sleep: 0.4, Burn: 0.04, Device: 0.015, Floor: 0.001, Solo: true, Files: 64, Read: 8e6}
	r := rank(j, nil)
	f, ok := find(r, ShardFiles)
	if got := f.Predicted.StepSeconds.Or(zero).Value; !ok || math.Abs(got-(0.4*(1-0.8*63/64)+0.04)/4) > 1e-3 {
		t.Errorf("%v: %v", ids(r), got)
	}
	// On a link that bytes fill, the format does not matter; on one that requests fill it does.
	full := j
	full.Link, full.Sleep, full.Read = 0.2, 0.2, 100e6
	if _, ok := find(rank(full, nil), ShardFiles); ok {
		t.Error("packing does not make a link wider")
	}
	full.Read = 1e6
	if _, ok := find(rank(full, nil), ShardFiles); !ok {
		t.Error("5 MB/s is not what fills a link")
	}
}

// TestCopyUnknown: nothing is said of a copy that nobody measured, unless it cannot matter.
func TestCopyUnknown(t *testing.T) {
	blind := func(p *loader.Parameters) { p.Step.Copy = loader.Est{} }
	r := rank(scenario.S26(), blind)
	if noHelp(r, PinMemory) != "" {
		t.Error("priced without a measurement")
	}
	if r := rank(scenario.S03(4), blind); !strings.Contains(noHelp(r, PinMemory), "hides behind the data wait") {
		t.Errorf("%q", noHelp(r, PinMemory))
	}
}

// TestRecordMode: without the cached-data test S03 cannot be told from latency. More workers may then come first, but its
// interval reaches to no gain at all and the assumption is written in it.
func TestRecordMode(t *testing.T) {
	j := scenario.S03(4)
	j.Solo = false
	f, ok := find(rank(j, nil), MoreWorkers)
	if !ok {
		t.Skip("not proposed")
	}
	if low := f.Predicted.StepSavedShare.Or(zero).Low; low > 0.01 || len(f.Assumes) == 0 {
		t.Errorf("low end %v, assumes %q", low, f.Assumes)
	}
}

// TestWatched: a loader that is not PyTorch's has its own names for its arguments.
func TestWatched(t *testing.T) {
	r := rank(scenario.S02(2), func(p *loader.Parameters) { p.Args.Watched = true })
	if f := r.Fixes[0]; f.ID != MoreWorkers || f.How != "the loader's own argument for: num_workers=3" {
		t.Errorf("%s: %s", f.ID, f.How)
	}
}

// TestUnseenWorkers: where nobody said who builds the batches, nothing is said of workers.
func TestUnseenWorkers(t *testing.T) {
	r := rank(scenario.S02(0), func(p *loader.Parameters) { p.Args.Watched, p.Args.Unseen, p.Batch = true, true, loader.BatchCosts{} })
	for _, n := range r.NoHelp {
		if strings.Contains(n.Reason, "no workers") {
			t.Errorf("%s: %s", n.ID, n.Reason)
		}
	}
	if len(r.Fixes) > 0 {
		t.Errorf("%s is proposed", r.Fixes[0].ID)
	}
}

// TestLazyCache: a cache of what an object store serves fills in the first epoch, which gains nothing.
func TestLazyCache(t *testing.T) {
	j := scenario.Job{W: 2, K: 2, Sleep: 0.173, Burn: 0.012, Device: 0.029, Floor: 0.001, Solo: true, Read: 26e3}
	r := rank(j, func(p *loader.Parameters) { p.Batch.Requests = some(16.0) })
	f, ok := find(r, NVMeCache)
	if saved := f.Predicted.StepSavedShare.Or(zero).Value; !ok || math.Abs(saved-0.9*(1-f.Predicted.StepSeconds.Or(zero).Value/0.0925)) > 1e-3 {
		t.Errorf("a cache that works in nine of ten epochs saves %v", saved)
	}
}

package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/loader/replay"
)

// Bottleneck names the term that sets the step.
type Bottleneck string

const (
	ByCompute Bottleneck = "compute" // the step takes as long with its batches in memory
	ByShared  Bottleneck = "shared"  // something serves one build at a time: a link, a disk, a lock
	ByWorkers Bottleneck = "workers" // the workers (at W = 0 the training process) have too many seconds of building to do
	ByCores   Bottleneck = "cores"   // the CPU time of all builds fills the cores
	ByMain    Bottleneck = "main"    // as compute, and what fills it is the training process on the CPU while the device idles
)

// Law holds the numbers of one configuration, as means, and says what bounds its step. A fix is a function from one Law to another.
//
// How long a step takes is for the replay of the recorded batches to say ([Model.Replay]). The largest term of the law is that for
// constant times and one resource at a time, and a lower bound otherwise: builds whose times vary, or that wait and compute in
// turn where L/W and B/K lie close, take up to 40 % longer. The law names what binds and how many workers could be enough.
//
// Off, CPU and Work are of a build that nothing holds up. Contention is not part of them: it is what the terms of cores and shared
// are for. Only run-queue time that full cores do not explain (other ranks, other jobs, the scheduler) is kept, as Queue and Stretch.
type Law struct {
	Workers    int     // W
	Prefetch   int     // P: batches asked for ahead, per worker
	OutOfOrder bool    // batches are delivered as they come
	Even       float64 // part of what builds differ by that is taken away, 0–1
	Fetches    float64 // batches per step

	Compute float64 // C: seconds per step with batches in memory
	Copy    float64 // part of Compute: exposed host-to-device copy
	Host    float64 // part of Compute: the training thread on the CPU with the device idle
	Outside float64 // seconds per step the training thread spends outside next(); below Compute where launches run ahead
	Ahead   int     // batches the device may be behind the training thread; 0 where the thread waits for the device every step
	Handoff float64 // seconds per batch the training thread takes to take over a batch that is there
	Feed    float64 // seconds per batch from the end of its build to its arrival, beside the worker's next build

	Off     float64 // seconds per batch off the CPU, in one worker
	CPU     float64 // seconds per batch of the building thread
	Queue   float64 // seconds per batch a worker waits for a core, whatever it computes: at every wake-up
	Stretch float64 // wall seconds of a CPU second where cores are contended but not full; below 1 counts as 1
	Work    float64 // CPU seconds per batch of the whole worker, helper threads included; ≥ CPU
	Shared  float64 // seconds per batch on an exclusive resource; part of Off

	MainCPU     float64 // CPU seconds per step of the training process
	WorkerCores float64 // cores that the workers get together; +Inf where unknown
	JobCores    float64 // cores that workers and training process get together; +Inf where unknown
}

// Terms are the lower bounds on a step that the law takes the maximum of, in seconds per step.
type Terms struct {
	Compute float64 // C, and the hand-off where there are workers
	Shared  float64
	Workers float64 // F·L/W; F·L at W = 0, where it adds to Compute
	Cores   float64 // F·B/K
}

// Build is L: one batch in one worker, with nothing in its way but the contention in Queue and Stretch.
func (l Law) Build() float64 { return l.Off + l.Queue + l.CPU*math.Max(1, l.Stretch) }

// WithCores returns the law on other cores. What contention there was falls with what is added.
func (l Law) WithCores(workers, job float64) Law {
	if workers > l.WorkerCores {
		l.Stretch = 1 + math.Max(0, l.Stretch-1)*l.WorkerCores/workers
		l.Queue *= l.WorkerCores / workers
	}
	l.WorkerCores, l.JobCores = workers, job
	return l
}

// Terms returns the terms of the law.
func (l Law) Terms() Terms {
	work := l.Fetches * l.Work
	if l.Workers == 0 {
		return Terms{Compute: l.Compute, Workers: l.Fetches * l.Build()}
	}
	compute := l.Compute + l.Fetches*l.Handoff
	if l.Ahead > 0 { // the device has something to run while a batch is taken over
		compute = math.Max(l.Compute, math.Min(l.Outside, l.Compute)+l.Fetches*l.Handoff)
	}
	return Terms{
		Compute: compute,
		Shared:  l.Fetches * l.Shared,
		Workers: l.Fetches * l.Build() / float64(l.Workers),
		Cores:   math.Max(work/l.WorkerCores, (work+l.MainCPU)/l.JobCores),
	}
}

// Bound is the least a steady step can take.
//
// At W = 0 the training thread builds and steps in turn. Where it waits for the device every step, the step is L + C; where
// launches run ahead, the device computes through the build and C is a bound of its own.
func (l Law) Bound() float64 {
	t := l.Terms()
	if l.Workers == 0 && l.Ahead == 0 {
		return t.Compute + t.Workers
	}
	if l.Workers == 0 {
		return math.Max(t.Compute, math.Min(l.Outside, l.Compute)+t.Workers)
	}
	return max(t.Compute, t.Shared, t.Workers, t.Cores)
}

// Binding names the largest term. On a tie compute comes first (nothing is gained by a better loader), then what more workers cannot change.
func (l Law) Binding() Bottleneck {
	t := l.Terms()
	name, most := ByCompute, t.Compute
	for _, c := range []struct {
		name  Bottleneck
		value float64
	}{{ByShared, t.Shared}, {ByCores, t.Cores}, {ByWorkers, t.Workers}} {
		if c.value > most*(1+tie) {
			name, most = c.name, c.value
		}
	}
	if name == ByCompute && l.hostFills() {
		return ByMain
	}
	return name
}

// tie is the relative difference below which two terms count as equal: rounding, not measurement.
const tie = 1e-9

// hostFills says whether the training process's own work is what a compute-bound step consists of.
func (l Law) hostFills() bool { return l.Host > mainPart*l.Compute && l.Host >= l.Copy }

// mainPart is the share of C above which the training process is named in place of compute.
const mainPart = 0.3

// Enough returns the smallest number of workers that brings the step to within slack of what any number could, and whether
// any does (a build of zero seconds needs none). It is W* of the report: the smallest W with L/W ≤ max(C, shared, B/K).
func (l Law) Enough(slack float64) (int, bool) {
	t := l.Terms()
	floor := math.Max(l.Compute, math.Max(t.Shared, l.withWorkers(1).Terms().Cores))
	floor = math.Max(floor, l.Fetches*l.Shared)
	if floor <= 0 || l.Build() <= 0 {
		return 0, false
	}
	w := math.Ceil(l.Fetches * l.Build() / (floor * (1 + slack)))
	if w > maxWorkers {
		return maxWorkers, true
	}
	return max(int(w), 1), true
}

// WorkerLimit is the number of workers beyond which none is proposed: 4 per usable core, 4 at least; 16 where cores are unknown.
// 48 readers per GPU broke an object store, 104 workers on 23 cores froze, maintainers advise about 4 per GPU (F70).
func (l Law) WorkerLimit() int {
	k := math.Min(l.WorkerCores, l.JobCores)
	if math.IsInf(k, 1) {
		return 16
	}
	return max(4, int(math.Min(4*k, replay.MostWorkers)))
}

// maxWorkers bounds W* where the step without loading is next to nothing.
const maxWorkers = 1 << 16

// withWorkers returns the law with w workers.
func (l Law) withWorkers(w int) Law {
	l.Workers = w
	return l
}

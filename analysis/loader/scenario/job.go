// Package scenario makes the parameters that a perfect measurement would find of jobs whose answer is known by arithmetic.
// The tests of the model, of the verdicts and of the fixes share them.
package scenario

import (
	"math"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/replay"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Job is a training job whose times are constant and known. Times are seconds; per batch unless said otherwise.
type Job struct {
	W int     // workers
	K float64 // usable cores

	Sleep  float64 // off the CPU, with nobody in the way
	Burn   float64 // CPU before collate
	Gather float64 // CPU inside collate
	Link   float64 // part of Sleep on something that serves one build at a time

	Device float64 // per step: kernels
	Copy   float64 // per step: exposed copy
	Main   float64 // per step: the training process's own CPU, the device idle meanwhile

	Floor float64 // hand-off; added to a compute-bound step
	Solo  bool    // the cached-data test ran, and built batches alone

	Online, Affinity float64 // cores of the host, cores of the workers' affinity; 0 = as K, unknown

	Batches, Epochs int     // per epoch; iterators seen
	WorkerStart     float64 // per epoch, before the first build

	Files, Read, Samples float64
	Persistent           bool
	Launches             float64
	SM                   float64 // SM activity while computing

	// Played takes the step from a replay instead of the arithmetic, which is short where builds wait and compute in turn and the
	// cores are nearly full.
	Played bool
}

// Cost returns L, C and B of the job.
func (j Job) Cost() (l, c, b float64) {
	return j.Sleep + j.Burn + j.Gather, j.Device + j.Copy + j.Main, j.Burn + j.Gather
}

// Step is the step by the arithmetic of the scenarios (§0), not by the code under test.
func (j Job) Step() float64 {
	l, c, b := j.Cost()
	if j.W == 0 {
		return l + c
	}
	workers := j.K
	if j.Affinity > 0 {
		workers = math.Min(workers, j.Affinity)
	}
	if j.Played {
		return j.play().Seconds
	}
	return max(c+j.Floor, j.Link, l/float64(j.W), (b+j.Main)/j.K, b/workers)
}

func (j Job) play() replay.Outcome {
	_, c, b := j.Cost()
	workers := j.K
	if j.Affinity > 0 {
		workers = math.Min(workers, j.Affinity)
	}
	return new(replay.Player).Play(replay.Setup{Workers: j.W, Prefetch: 2, Wait: j.Sleep, Exclusive: j.Link, CPU: b, Take: j.Floor, Outside: c,
		Main: j.Main, WorkerCores: workers, JobCores: j.K}, nil, max(64, 8*j.W))
}

// Wait is the data wait of a step.
func (j Job) Wait() float64 {
	if j.Played {
		return j.play().Wait
	}
	_, c, _ := j.Cost()
	return j.Step() - c
}

// Parameters is what a perfect measurement of the job finds.
func (j Job) Parameters() loader.Parameters {
	l, c, b := j.Cost()
	t := j.Step()
	wall := l
	switch {
	case j.Played && j.W > 0 && j.Link < t:
		wall = l + j.play().Queued
	case j.W > 0 && t > (c+j.Floor)*(1+1e-9):
		wall = math.Max(l, float64(j.W)*t) // every worker always has a build under way
	}
	off, queue := j.Sleep, wall-l
	if j.Link >= t && j.W > 0 {
		off, queue = wall-b, 0
	}
	p := loader.Parameters{GPUs: 1}
	p.Step = loader.StepTimes{
		Seconds: about(t), Wait: about(j.Wait()), Copy: about(j.Copy),
		MainCPU: unit.Some(j.Main), Fetches: unit.Some(1.0), HandoffFloor: unit.Some(j.Floor),
	}
	p.Batch = loader.BatchCosts{
		Wall: about(wall), CPU: about(b), OffCPU: about(off), RunQueue: unit.Some(queue),
		Collate: unit.Some(j.Gather), CV: unit.Some(0.0), Samples: unit.Some(8.0),
	}
	if j.Solo {
		p.Step.Cached = about(c)
		if j.W > 1 {
			p.Solo = loader.SoloCosts{Wall: about(l), OffCPU: about(j.Sleep)}
		}
	}
	j.arguments(&p)
	j.host(&p)
	j.epoch(&p, l)
	return p
}

func (j Job) arguments(p *loader.Parameters) {
	p.Args = loader.Arguments{Workers: j.W, Persistent: unit.Some(j.Persistent), StartMethod: unit.Some("fork")}
	if j.W > 0 {
		p.Args.Prefetch = unit.Some(2)
		p.Step.Handoff = unit.Some(j.Floor)
	}
	if j.Files > 0 {
		p.Batch.Files = unit.Some(j.Files)
	}
	if j.Read > 0 {
		p.Batch.Read = unit.Some(j.Read)
	}
	if j.Samples > 0 {
		p.Batch.Samples = unit.Some(j.Samples)
	}
}

func (j Job) host(p *loader.Parameters) {
	online := j.K
	if j.Online > 0 {
		online = j.Online
	}
	p.Host = loader.Cores{Usable: unit.Some(j.K), Online: unit.Some(online), Cpuset: unit.Some(j.K), Foreign: unit.Some(0.0), Ranks: 1}
	if j.Affinity > 0 {
		p.Host.Affinity = unit.Some(j.Affinity)
		p.Host.Usable = unit.Some(math.Min(j.K, j.Affinity))
	}
	busy := (j.Burn + j.Gather + j.Main) / j.Step()
	p.Host.Busy = unit.Some(busy)
	p.Device = loader.Device{Resident: unit.Some(j.Device / j.Step()), Emulated: true}
	if j.Launches > 0 {
		p.Device.Launches = unit.Some(j.Launches)
	}
	sm := j.SM
	if sm == 0 {
		sm = 0.9
	}
	p.Device.SMActive = unit.Some(sm * j.Device / j.Step())
	p.Device.SMComputing = unit.Some(sm)
}

func (j Job) epoch(p *loader.Parameters, l float64) {
	if j.Batches == 0 {
		return
	}
	start := j.WorkerStart + l
	p.Epoch = loader.EpochStart{
		Seconds: about(start), WorkerStart: unit.Some(j.WorkerStart), FirstBuild: unit.Some(l),
		Batches: unit.Some(j.Batches), Epochs: j.Epochs,
	}
	wall := start + float64(j.Batches)*j.Step()
	p.Epoch.Wall, p.Epoch.Share = unit.Some(wall), unit.Some(start/wall)
}

// about is a measurement with an interval of ±2 %.
func about(v float64) loader.Est {
	return unit.Some(stat.Estimate{Value: v, Low: 0.98 * v, High: 1.02 * v, N: 200, Grade: stat.GradeB, Source: "arithmetic"})
}

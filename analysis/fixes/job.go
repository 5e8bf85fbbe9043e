package fixes

import (
	"math"

	"github.com/datawait/datawait/analysis/loader"
)

// job is what all fixes are priced against.
type job struct {
	model   loader.Model
	p       loader.Parameters
	step    float64 // measured, seconds
	batches float64 // fetches per epoch ÷ fetches per step: steps per epoch; 0 = unknown
	wall    float64 // seconds of an epoch, its start included; of a step where the epoch's length is unknown
	now     state
}

// state is one configuration: the law, and the epoch start.
type state struct {
	law     loader.Law
	start   float64 // seconds per epoch before a worker begins its first batch
	extra   float64 // seconds the first batch of an epoch takes beyond any other: dataset open, buffer fill
	collate float64 // CPU seconds per batch inside collate; part of law.CPU
	stall   float64 // seconds per step of stalls, spread over all steps; outside the law
}

// epochStart is the gap from an iterator's creation to its first batch.
func (s state) epochStart() float64 { return s.start + s.extra + s.law.Build() }

// newJob reads the model once, for all fixes.
func newJob(m loader.Model) *job {
	j := &job{model: m, p: m.Parameters, now: state{law: m.Law}}
	j.step = m.Pace.Or(zero).Value
	j.now.collate = math.Min(j.now.law.CPU, m.Parameters.Batch.Collate.Or(0))
	j.now.stall = m.Parameters.Around.Stalls.PerStep
	j.readEpoch()
	return j
}

// readEpoch splits the epoch start into what workers, the dataset and the first build take.
func (j *job) readEpoch() {
	e := j.p.Epoch
	if seconds, ok := e.Seconds.Get(); ok {
		build := math.Min(j.now.law.Build(), seconds.Value)
		j.now.start = math.Max(0, seconds.Value-build)
		if s, ok := e.WorkerStart.Get(); ok {
			j.now.start = math.Min(j.now.start, s)
		} else if first, ok := e.FirstBuild.Get(); ok {
			j.now.start = math.Max(0, seconds.Value-first)
		}
		j.now.extra = math.Max(0, seconds.Value-build-j.now.start)
	}
	j.wall = j.span(j.now, j.step)
	if n, ok := e.Batches.Get(); ok && n > 0 && e.Seconds.IsKnown() {
		j.batches = float64(n) / j.now.law.Fetches
		if !j.model.Known.Step {
			j.step = math.Max(0, (e.Wall.Or(0)-j.now.epochStart())/j.batches-j.now.stall)
		}
		j.wall = j.span(j.now, j.step)
	}
}

// epochsOnly says whether the epoch start can be judged although no steady step was measured: epochs too short for steps to
// settle are the ones whose start costs most (F16).
func (j *job) epochsOnly() bool { return j.batches > 0 && j.p.Epoch.Wall.IsKnown() && j.wall > 0 }

// span is the seconds of an epoch in a configuration with this step; of one step where the epoch's length is unknown.
func (j *job) span(s state, step float64) float64 {
	if j.batches == 0 {
		return step + s.stall
	}
	return j.batches*(step+s.stall) + s.epochStart()
}

// stepIn is the step of another configuration: what the replay does not explain of the measured step stays.
func (j *job) stepIn(s state) float64 {
	return math.Max(s.law.Compute, j.step+j.model.Replay(s.law)-j.model.Replay(j.now.law))
}

// cost is what fixes are compared by.
func (j *job) cost(s state) float64 { return j.span(s, j.stepIn(s)) }

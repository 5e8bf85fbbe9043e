package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// What follows changes the step itself. While the step waits for data it changes nothing: compute hides behind the wait, and
// every canned list of advice forgets it.

// Pipes of a step from which mixed precision is worth a word. A job that uses tensor pipes, in 16 bits or TF32, shows more than
// tensorIdle; one that waits for memory or for small kernels shows less than fp32Busy. No public number says where to draw the lines.
const (
	tensorIdle = 0.05
	fp32Busy   = 0.20
)

// mixedPrecision computes in 16 bits: something for a job that keeps the FP32 pipe busy and leaves the tensor pipes idle.
func mixedPrecision(j *job, s state) proposal {
	p := proposal{title: "mixed precision", effort: fewLines, how: `torch.autocast("cuda", dtype=torch.bfloat16) around forward and loss`}
	p.zero = j.noUseOfSpeed(s)
	if p.zero != "" {
		return p
	}
	tensor, knownT := j.p.Device.Tensor.Get()
	fp32, knownF := j.p.Device.FP32.Get()
	switch {
	case j.waitsForData(s), j.model.Launching(), knownT && tensor >= tensorIdle, knownF && fp32 < fp32Busy:
		return proposal{}
	case knownT && knownF:
		p.unpriced = fmt.Sprintf("the tensor pipes are active for %s of a step and the FP32 pipe for %s; %s", phrase.Percent(tensor), phrase.Percent(fp32), j.needsTrial(s))
	default:
		p.unpriced = "whether the tensor pipes are used was not measured; " + j.needsTrial(s)
	}
	return p
}

// compileModel cuts what launching costs: graphs took a small ResNet from 89 to 50 ms, and nothing at batch 8 (F60).
func compileModel(j *job, s state) proposal {
	p := proposal{title: "torch.compile or CUDA graphs", effort: fewLines, how: `model = torch.compile(model, mode="reduce-overhead")`}
	switch {
	case j.hidden(s):
		p.zero = j.hides()
	case j.waitsForData(s):
		return proposal{}
	case j.model.Launching() && s.law.Host > 0:
		p.assumes = []string{fmt.Sprintf("half of the %s that the host takes to launch goes away (interval: none to all; F60)", phrase.Duration(s.law.Host))}
		p.change, p.best, p.worst = lessHost(0.5), lessHost(1), lessHost(0)
	case j.hostWorks(s):
		p.zero = j.noUseOfSpeed(s)
	default:
		p.unpriced = j.needsTrial(s)
	}
	return p
}

// largerBatch gives the device more to do per launch. The saving is per sample.
func largerBatch(j *job, s state) proposal {
	p := proposal{title: "twice the batch size", effort: oneArgument, how: "DataLoader(..., batch_size=2·B) with the learning rate adjusted"}
	if b, ok := j.p.Args.BatchSize.Get(); ok && b > 0 {
		p.how = fmt.Sprintf("DataLoader(..., batch_size=%d) with the learning rate adjusted", 2*b)
	}
	switch {
	case j.hidden(s):
		p.zero = j.hides()
	case j.waitsForData(s):
		return proposal{}
	case j.model.Launching() && s.law.Host > 0:
		p.needs = "GPU memory for twice the batch; it changes training"
		p.assumes = []string{"host time per step stays as it is, device time doubles: the saving is per sample"}
		p.change, p.worst = lessHost(0.5), lessHost(0.25)
	case j.hostWorks(s):
		p.zero = j.noUseOfSpeed(s)
	default:
		p.unpriced = j.needsTrial(s)
	}
	return p
}

// hidden says whether a step half as long would not make the job faster by an amount that counts.
func (j *job) hidden(s state) bool {
	before := j.cost(s)
	after := j.cost(apply(s, func(s *state) { s.shorten(s.law.Compute / 2) }))
	return j.waiting(s) && before > 0 && (before-after)/before < Worth
}

// waitsForData says whether so much of a step waits for data that how it computes is not the next thing to change. At W = 0 building
// and computing add up, so it is not that a faster device wins nothing; but it is not said before the loader is mended.
func (j *job) waitsForData(s state) bool {
	step := j.stepIn(s)
	return step > 0 && 1-(s.law.Compute+s.law.Fetches*s.law.Handoff)/step >= dataFirst
}

// dataFirst is the share of a step up to which it counts as no longer than with its batches in memory.
const dataFirst = 0.05

// noUseOfSpeed says why a faster device would not help; "" where it may.
func (j *job) noUseOfSpeed(s state) string {
	if j.hidden(s) {
		return j.hides()
	}
	if s.law.Binding() == loader.ByMain {
		return fmt.Sprintf("the device already waits for the training process: %s of a step of %s", phrase.Duration(s.law.Host), phrase.Duration(j.stepIn(s)))
	}
	return ""
}

// hostWorks says whether the training process fills the step with something other than launching kernels.
func (j *job) hostWorks(s state) bool {
	return s.law.Binding() == loader.ByMain && j.p.Device.Launches.IsKnown() && !j.model.Launching()
}

// needsTrial says what would price a change to the step, and bounds it.
func (j *job) needsTrial(s state) string {
	most := j.cost(apply(s, func(s *state) { s.shorten(s.law.Compute) }))
	bound := 1 - most/j.cost(s)
	return fmt.Sprintf("how much faster a step gets was not tried; the data path caps the gain at %.0f %%", 100*max(0, bound))
}

// lessHost takes a part of the training process's own time away.
func lessHost(part float64) func(*state) {
	return func(s *state) {
		x := part * s.law.Host
		s.shorten(x)
		s.law.Host -= x
		s.law.MainCPU = max(0, s.law.MainCPU-x)
	}
}

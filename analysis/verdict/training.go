package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// mainProcess: the training process computes while the device has nothing to do, outside next() (F40; scenario S21).
func mainProcess(s *subject) opinion {
	if !s.judge {
		return opinion{}
	}
	share := s.share(s.l.Host)
	switch {
	case !s.m.Known.Host:
		return opinion{}
	case share < Small: // every script's own lines cost a millisecond or so between two launches
		return drop(fmt.Sprintf("the training process computes with the device idle for %s of a step", phrase.Percent(share)))
	case s.hidesCompute():
		return drop("what the training process does hides behind the data wait")
	case s.m.Launching():
		return drop("what the training process does is launching many small kernels")
	}
	base := 0.85
	if !s.p.Device.Launches.IsKnown() {
		base = 0.6 // it may be launching: nobody counted kernels
	}
	return find(Verdict{
		Title:       fmt.Sprintf("the training process itself holds the GPU up: %s of its own CPU work per step while the device idles, %s of the step", phrase.Duration(s.l.Host), phrase.Percent(share)),
		Confidence:  s.sure(base),
		Evidence:    s.device(s.wait().num("main_cpu_seconds", s.p.Step.MainCPU, "seconds", bySteps)).value("host_seconds", s.l.Host, "seconds", byLaw).num("launches_per_step", s.p.Device.Launches, "count", byGPU),
		FalsifiedBy: "a run with that work moved into the workers whose step is no shorter",
	}, share)
}

// launchBound: the host cannot launch as fast as the device computes (F60, F61; scenario S25, fixture M1).
func launchBound(s *subject) opinion {
	switch {
	case !s.judge:
		return opinion{}
	case s.m.Launching() && s.gain >= Notable:
		return drop(fmt.Sprintf("%s of the step waits for data: how the rest is launched comes after that", phrase.Percent(s.gain)))
	case s.hidesCompute():
		return opinion{}
	case !s.m.Launching():
		if s.l.Binding() == loader.ByMain && !s.p.Device.Launches.IsKnown() {
			return drop("kernels were not counted, so host work and launching cannot be told apart")
		}
		return opinion{}
	}
	sm := s.m.Computing().Or(0)
	title := fmt.Sprintf("the device nearly always has a kernel resident and %s of its SMs work: kernels are too small, or one spins%s", phrase.Percent(sm), s.spinning())
	share := s.share(s.l.Compute) * (1 - sm)
	if s.l.Host > 0 {
		share = s.share(s.l.Host)
		title = fmt.Sprintf("launching kernels takes longer than running them: the device idles for %s of a step of %s", phrase.Duration(s.l.Host), phrase.Duration(s.step))
	}
	return find(Verdict{
		Title: title, Confidence: s.sure(0.8),
		Evidence: s.device(s.wait().num("main_cpu_seconds", s.p.Step.MainCPU, "seconds", bySteps)).num("launches_per_step", s.p.Device.Launches, "count", byGPU).
			num("power_of_limit", s.p.Device.Power, "ratio", byDriver),
		FalsifiedBy: "a run with twice the batch size that takes twice as long per step",
	}, share)
}

// spinning names what else looks like it where ranks wait for one another: kernels of a collective spin on a few SMs (nccl#403, #1432).
func (s *subject) spinning() string {
	if s.p.GPUs > 1 {
		return ", as those of a collective do that waits for another rank"
	}
	return ""
}

// exposedCopy: the device waits for its batch to arrive (F55, F56; scenario S23).
func exposedCopy(s *subject) opinion {
	if !s.judge || !s.p.Step.Copy.IsKnown() {
		return opinion{}
	}
	share := s.share(s.l.Copy)
	switch {
	case share < Notable:
		return drop(fmt.Sprintf("the exposed copy takes %s of a step", phrase.Percent(share)))
	case s.p.Step.Copy.Or(none).Low <= 0:
		return drop(fmt.Sprintf("the exposed copy takes %s of a step, or none: steps vary by more than that", phrase.Percent(share)))
	case s.hidesCompute():
		return drop("the copy hides behind the data wait")
	}
	return find(Verdict{
		Title:       fmt.Sprintf("copying the batch to the device takes %s of every step while nothing computes: %s", phrase.Duration(s.l.Copy), phrase.Percent(share)),
		Confidence:  s.sure(0.85),
		Evidence:    s.wait().est("copy_seconds", s.p.Step.Copy, "seconds", byTest).num("batch_bytes", s.p.Batch.Bytes, "bytes", byBuilds),
		FalsifiedBy: "a run with pinned memory and non_blocking copies, one batch ahead, whose step is no shorter",
	}, share)
}

// handOff: batches are ready and next() still takes long (F51, F54; F38).
func handOff(s *subject) opinion {
	h, ok := s.p.Step.Handoff.Get()
	floor := s.p.Step.HandoffFloor.Or(loader.TypicalHandoff)
	if !s.judge || !ok || s.l.Workers == 0 {
		return opinion{}
	}
	share := s.share(s.l.Fetches * (s.l.Handoff - floor))
	title := fmt.Sprintf("batches are ready, and handing one over takes %s (%s at least): %s of the step", phrase.Duration(h), phrase.Duration(floor), phrase.Percent(share))
	usual := h < 2*floor || share < Notable
	if whole := s.handedOver(); usual && whole >= Heavy {
		share = whole
		title = fmt.Sprintf("batches are ready, and handing one over takes %s, as it does anywhere: %s of so short a step", phrase.Duration(h), phrase.Percent(whole))
		usual = false
	}
	switch {
	case usual:
		return drop(fmt.Sprintf("next() on a batch that is ready takes %s, at least %s here", phrase.Duration(h), phrase.Duration(floor)))
	case s.hidesCompute():
		return drop("the hand-off hides behind building")
	}
	return find(Verdict{
		Title:       title,
		Confidence:  s.sure(0.8),
		Evidence:    s.wait().value("handoff_seconds_per_batch", h, "seconds", bySteps).value("handoff_floor_seconds", floor, "seconds", bySteps).num("tensors_per_batch", s.p.Batch.Tensors, "count", byBuilds).num("batch_bytes", s.p.Batch.Bytes, "bytes", byBuilds),
		FalsifiedBy: "a run with the batch packed into a few tensors whose next() takes as long",
	}, share)
}

// handedOver is the share of the step that measured hand-offs take, their floor included.
func (s *subject) handedOver() float64 {
	if !s.p.Step.Handoff.IsKnown() {
		return 0
	}
	return s.share(s.handoff())
}

// hidesCompute says whether the loader binds, so that what the step itself does is hidden.
func (s *subject) hidesCompute() bool {
	b := s.l.Binding()
	return s.l.Workers > 0 && b != loader.ByCompute && b != loader.ByMain && s.gain >= Notable
}

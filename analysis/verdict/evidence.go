package verdict

import (
	"math"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
)

// Sources of evidence.
const (
	bySteps  = "hook: steps of the training process"
	byTest   = "cached-data test"
	byBuilds = "hook: batches built in the workers"
	byAlone  = "cached-data test: batches built alone"
	byHost   = "host counters"
	byGPU    = "GPU counters"
	byDriver = "state told by the GPU's driver"
	byLaw    = "law of the loader"
)

// evidence collects what was measured and leaves out what was not.
type evidence []Evidence

func (e evidence) num(metric string, v loader.Num, unit, source string) evidence {
	if n, ok := v.Get(); ok {
		return e.value(metric, n, unit, source)
	}
	return e
}

func (e evidence) est(metric string, v loader.Est, unit, source string) evidence {
	if n, ok := v.Get(); ok {
		return e.value(metric, n.Value, unit, source)
	}
	return e
}

func (e evidence) value(metric string, v float64, unit, source string) evidence {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return e
	}
	return append(e, Evidence{metric, v, unit, source})
}

// wait is the evidence that the step waits.
func (s *subject) wait() evidence {
	var e evidence
	if w, ok := s.p.Step.Wait.Get(); ok {
		e = e.value("data_wait_share", s.share(w.Value), "ratio", bySteps)
	}
	if c, ok := s.p.Step.Cached.Get(); ok && c.Value > 0 {
		e = e.value("ceiling", s.step/c.Value, "times", byTest)
	}
	return e.est("step_seconds", s.p.Step.Seconds, "seconds", bySteps)
}

// build is the evidence of what a batch costs.
func (s *subject) build(e evidence) evidence {
	e = e.value("workers", float64(s.l.Workers), "count", bySteps)
	e = e.est("build_seconds_per_batch", s.p.Batch.Wall, "seconds", byBuilds)
	e = e.est("solo_build_seconds_per_batch", s.p.Solo.Wall, "seconds", byAlone)
	e = e.est("cpu_seconds_per_batch", s.p.Batch.CPU, "seconds", byBuilds)
	e = e.est("off_cpu_seconds_per_batch", s.p.Batch.OffCPU, "seconds", byBuilds)
	return e.num("runq_seconds_per_batch", s.p.Batch.RunQueue, "seconds", byBuilds)
}

// device is the evidence of what the GPU does.
func (s *subject) device(e evidence) evidence {
	e = e.num("resident_ratio", s.p.Device.Resident, "ratio", byGPU)
	e = e.num("sm_active_ratio", s.p.Device.SMActive, "ratio", byGPU)
	e = e.num("sm_active_while_computing", s.p.Device.SMComputing, "ratio", byGPU)
	e = e.num("tensor_active_ratio", s.p.Device.Tensor, "ratio", byGPU)
	return e.num("fp32_active_ratio", s.p.Device.FP32, "ratio", byGPU)
}

// busy is the device's busy seconds per step.
func (s *subject) busy() (float64, bool) {
	r, ok := s.p.Device.Resident.Get()
	t, okStep := s.m.Pace.Get()
	return r * t.Value, ok && okStep
}

var none stat.Estimate

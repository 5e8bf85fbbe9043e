package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Scaling is what more GPUs would make of the job with the input pipeline that it has: the same builders, cores and store feed them.
type Scaling struct {
	Factor     int        `json:"factor"`           // of the number of GPUs
	Throughput loader.Est `json:"throughput_ratio"` // batches per second beside today's, at most: the GPUs' own scaling is not in it
	Bottleneck string     `json:"bottleneck"`       // afterwards; "" = unknown
}

// twice is the factor that is asked for.
const twice = 2

// faster is a step on so many times the GPUs: what the device and the training process do is shared among them, what the pipeline
// does is not.
func faster(factor float64) loader.Change {
	return func(l loader.Law) loader.Law {
		for _, v := range []*float64{&l.Compute, &l.Copy, &l.Host, &l.Outside, &l.Handoff} {
			*v /= factor
		}
		return l
	}
}

// scaling predicts it. Without workers every GPU brings the process that builds for it, so there is no pipeline that stays as it is.
func (j *job) scaling() Scaling {
	out := Scaling{Factor: twice, Throughput: unit.None[stat.Estimate]("the model does not reproduce the run")}
	switch {
	case !j.model.Trusted || !(j.step > 0):
		return out
	case j.now.law.Workers == 0:
		out.Throughput = unit.None[stat.Estimate]("the training process builds its batches itself, and every further GPU brings another")
		return out
	case !j.model.Known.Build:
		out.Throughput = unit.None[stat.Estimate]("the time to build a batch was not seen")
		return out
	}
	e := j.model.Predict(faster(twice))
	if !(e.Low > 0) {
		out.Throughput = unit.None[stat.Estimate]("a step without loading takes no time")
		return out
	}
	most := func(step float64) float64 { return min(twice, j.step/step) }
	out.Throughput = unit.Some(stat.Estimate{Value: most(e.Value), Low: most(e.High), High: most(e.Low), N: e.N, Grade: stat.GradeC, Source: e.Source})
	out.Bottleneck = string(faster(twice)(j.now.law).Binding())
	return out
}

// moreGPUs is what the reader was about to buy.
func moreGPUs(j *job, s state) proposal {
	p := proposal{title: "more GPUs", effort: hardware}
	most := ""
	if r, ok := j.scaling().Throughput.Get(); ok {
		most = fmt.Sprintf("on the input pipeline as it is, twice the GPUs train at most %.2f times as fast", r.Value)
	}
	if j.waiting(s) && s.law.Binding() != loader.ByCompute {
		p.zero = fmt.Sprintf("every further GPU waits as well (%.0f %% of its step)", 100*(1-s.law.Compute/j.stepIn(s)))
		switch s.law.Binding() {
		case loader.ByCores:
			p.zero += ", and on the same host its workers get none of the cores that are full now"
		case loader.ByShared:
			p.zero += ", and it queues for the same store"
		}
		if most != "" {
			p.zero += ": " + most
		}
		return p
	}
	p.how = "distributed data parallel"
	p.unpriced = "it divides the time of an epoch at best and saves no GPU hour; how well the job scales was not measured"
	if most != "" {
		p.unpriced = most + "; " + p.unpriced
	}
	return p
}

package analysis

import (
	"cmp"
	"math"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// OverGPUs is the mean of a share over the GPUs that know it, weighted by how long each was allocated, and how many know it.
// Its bounds are the means of theirs, as if all erred the same way: the widest they can be.
func OverGPUs(gpus []GPU, pick func(GPU) Est) (Est, int) {
	var sum stat.Estimate
	var weight float64
	covered := 0
	for _, g := range gpus {
		e, ok := pick(g).Get()
		if !ok || math.IsNaN(e.Value) {
			continue
		}
		w := cmp.Or(float64(g.AllocatedNS), 1)
		sum = weigh(sum, e, w, covered == 0)
		weight += w
		covered++
	}
	switch {
	case covered > 0:
		sum.Value, sum.Low, sum.High = sum.Value/weight, sum.Low/weight, sum.High/weight
		return unit.Some(sum), covered
	case len(gpus) > 0:
		return pick(gpus[0]), 0
	}
	return unit.None[stat.Estimate]("no GPU was sampled"), 0
}

// SMActivity is that of all the job's GPUs together, and how many of them know it.
func (r *Result) SMActivity() (Est, int) {
	if len(r.GPUs) == 0 && r.Quality.GPU.Why != "" {
		return unit.None[stat.Estimate](r.Quality.GPU.Why), 0
	}
	return OverGPUs(r.GPUs, func(g GPU) Est { return g.SMActiveRatio })
}

func weigh(sum, e stat.Estimate, w float64, first bool) stat.Estimate {
	sum.Value += w * e.Value
	sum.Low += w * e.Low
	sum.High += w * e.High
	sum.N += e.N
	sum.Grade = stat.Worse(sum.Grade, e.Grade)
	if first {
		sum.Source = e.Source
	} else if sum.Source != e.Source {
		sum.Source = "several sources"
	}
	return sum
}

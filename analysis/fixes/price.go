package fixes

import (
	"math"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

var zero stat.Estimate

// priced is a proposal with its prediction.
type priced struct {
	rule  rule
	p     proposal
	step  stat.Estimate // seconds afterwards
	saved stat.Estimate // share of the training time
	after state
}

// price predicts a proposal on the configuration that ran.
func (j *job) price(r rule, p proposal) priced {
	out := priced{rule: r, p: p, after: apply(j.now, p.change)}
	out.step = j.predict(p.change)
	for _, end := range []func(*state){p.best, p.worst} {
		if end != nil {
			out.step = widen(out.step, j.end(end))
		}
	}
	out.step.Grade = stat.Worse(out.step.Grade, gradeOf(p))
	out.saved = j.savedShare(out, p)
	return out
}

// gradeOf is the best grade a prediction can have: A belongs to what a counter or clock saw, and what is taken for granted is C.
func gradeOf(p proposal) stat.Grade {
	if len(p.assumes) > 0 {
		return stat.GradeC
	}
	return stat.GradeB
}

// predict is the step after a change, with the interval of the measurements.
func (j *job) predict(change func(*state)) stat.Estimate {
	if !j.model.Known.Step {
		return stat.Estimate{Value: j.step, Low: j.step, High: j.step, Grade: stat.GradeC, Source: "length of an epoch"}
	}
	return j.model.Predict(func(l loader.Law) loader.Law {
		s := j.now
		s.law = l
		return apply(s, change).law
	})
}

// end is the step at one end of an assumption.
func (j *job) end(change func(*state)) float64 {
	if !j.model.Known.Step {
		return j.step
	}
	return j.stepIn(apply(j.now, change))
}

// widen stretches an interval so that it reaches the other end of an assumption, as an independent error.
func widen(e stat.Estimate, other float64) stat.Estimate {
	d := other - e.Value
	if d < 0 {
		e.Low = math.Max(math.Min(e.Low, other), e.Value-math.Hypot(e.Value-e.Low, d))
	} else {
		e.High = e.Value + math.Hypot(e.High-e.Value, d)
	}
	e.Grade = stat.Worse(e.Grade, stat.GradeC)
	return e
}

// savedShare turns steps into a share of the training time, epoch starts included.
func (j *job) savedShare(out priced, p proposal) stat.Estimate {
	share := func(s state, step float64) float64 { return 1 - j.span(s, step)/j.wall + 0 }
	e := out.step
	e.Value = share(out.after, out.step.Value)
	e.Low, e.High = share(out.after, out.step.High), share(out.after, out.step.Low)
	for _, end := range []struct {
		change func(*state)
		step   float64
	}{{p.best, out.step.Low}, {p.worst, out.step.High}} { // the epoch start is as good or bad as the step
		if end.change != nil {
			v := share(apply(j.now, end.change), end.step)
			e.Low, e.High = math.Min(e.Low, v), math.Max(e.High, v)
		}
	}
	works := 1 - p.idle
	e.Value, e.Low, e.High = works*e.Value, works*e.Low, math.Min(works*e.High, 1)
	return e
}

// fix writes a priced proposal as the report shows it.
func (j *job) fix(x priced) Fix {
	f := Fix{
		ID: x.rule.id, Title: x.p.title, Effort: x.p.effort.String(), How: x.p.how, Recipe: Recipe(x.rule.id), Needs: x.p.needs, Arguments: x.p.sets.orUnchanged(),
		Measured: unit.None[stat.Estimate]("not tried in this run"),
		Assumes:  append([]string{}, x.p.assumes...), NoRoom: x.p.noRoom,
	}
	f.Predicted = Prediction{
		StepSeconds: unit.Some(x.step), StepSavedShare: unit.Some(x.saved),
		WaitRemovedShare: j.waitRemoved(x),
		EpochSeconds:     unit.None[float64]("the length of an epoch is not known"),
		GPUHoursPerDay:   unit.None[float64]("the number of GPUs is not known"),
	}
	if !j.model.Known.Step {
		f.Predicted.StepSeconds = unit.None[stat.Estimate]("no steady step was measured")
	}
	if j.batches > 0 {
		f.Predicted.EpochSeconds = unit.Some(x.saved.Value * j.wall)
	}
	if j.p.GPUs > 0 {
		f.Predicted.GPUHoursPerDay = unit.Some(24 * x.saved.Value * float64(j.p.GPUs))
	}
	return f
}

// waitRemoved is the share of the data wait that goes away for good: what a step takes beyond C, as far as the job gains it. Work that
// a fix adds to the step takes the place of wait and removes none.
func (j *job) waitRemoved(x priced) loader.Num {
	wait := func(s state, step float64) float64 {
		w := math.Max(0, step-s.law.Compute)
		if j.batches > 0 {
			w = j.batches*w + s.epochStart()
		}
		return w
	}
	before := wait(j.now, j.step)
	if before <= 0 {
		return unit.None[float64]("there is no data wait to remove")
	}
	gone := math.Min(before-wait(x.after, x.step.Value), j.wall-j.span(x.after, x.step.Value))
	return unit.Some(math.Max(0, math.Min(1, (1-x.p.idle)*gone/before)))
}

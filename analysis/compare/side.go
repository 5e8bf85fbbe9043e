package compare

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Input is one run, and how the reader called it.
type Input struct {
	Path   string
	Result *analysis.Result
}

// side is one run while it is compared.
type side struct {
	*analysis.Result
	path   string
	loader *analysis.Loader // that the training reads; nil where there is none, or none that stands for it
	none   string           // why there is no loader
}

func newSide(in Input) side {
	s := side{Result: in.Result, path: in.Path}
	s.loader, s.none = training(in.Result.Loaders)
	return s
}

// nearlyAll is the share of the training's fetches from which one loader stands for the whole.
const nearlyAll = 0.9

// training finds the loader that the training reads. Several that share the work have no epoch in common.
func training(all []analysis.Loader) (*analysis.Loader, string) {
	var most *analysis.Loader
	fetches := 0
	for i := range all {
		l := &all[i]
		if l.Role != "training" {
			continue
		}
		fetches += l.Fetches
		if most == nil || l.Fetches > most.Fetches {
			most = l
		}
	}
	switch {
	case most == nil:
		return nil, "no loader of the training was seen"
	case float64(most.Fetches) < nearlyAll*float64(fetches):
		return nil, "several loaders feed the training, and an epoch of one is not that of another"
	}
	return most, ""
}

// describe is the side as it goes into the document.
func (s side) describe() Side {
	d := Side{Path: s.path, Name: s.Job.Name, Command: s.Job.Command, StartedAt: s.StartedAt, Version: s.Version, Nodes: len(s.Nodes), Ranks: s.Job.Ranks,
		GPUs: s.models(), Steps: s.Job.Steps, Steady: s.Step.N, Throwaway: s.Job.Throwaway}
	if d.Command == nil {
		d.Command = []string{}
	}
	return d
}

// models are the names of the GPUs, each once.
func (s side) models() []string {
	names := []string{}
	for _, g := range s.Result.GPUs {
		if g.Name != "" && !slices.Contains(names, g.Name) {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return names
}

// sm is the SM activity of all GPUs, where all know it.
func (s side) sm() analysis.Est {
	e, covered := s.SMActivity()
	if covered > 0 && covered < len(s.Result.GPUs) {
		return unit.None[stat.Estimate]("it is not known of every GPU")
	}
	return e
}

// leg is one arm of the cached-data test.
func (s side) leg(name string) analysis.Leg {
	if s.Baseline == nil {
		none := unit.None[stat.Estimate]("no cached-data test ran")
		return analysis.Leg{StepSeconds: none, SMActiveRatio: none}
	}
	if l, ok := s.Baseline.Legs[name]; ok {
		return l
	}
	none := unit.None[stat.Estimate]("that leg of the test did not run")
	return analysis.Leg{StepSeconds: none, SMActiveRatio: none}
}

// samples is how many of them a step of one rank takes.
func (s side) samples() analysis.Ratio {
	per, ok := s.Job.SamplesPerBatch.Get()
	fetches, known := s.Job.FetchesPerStep.Get()
	if !ok || !known || !(per > 0) || !(fetches > 0) {
		return unit.None[float64]("how many samples a step takes is not known")
	}
	return unit.Float(per*fetches, "not a number")
}

// batches is how many batches an epoch of one rank has.
func (s side) batches() analysis.Ratio {
	if s.loader == nil {
		return unit.None[float64](s.none)
	}
	n, ok := s.loader.BatchesPerEpoch.Get()
	if !ok || n <= 0 {
		return unit.None[float64]("the length of an epoch is not known")
	}
	return unit.Some(float64(n))
}

// epochSamples is how many samples an epoch of the whole job has.
func (s side) epochSamples() analysis.Ratio {
	n, ok := s.batches().Get()
	per, known := s.Job.SamplesPerBatch.Get()
	if !ok || !known || !(per > 0) || s.Job.Ranks < 1 {
		return unit.None[float64]("how many samples an epoch has is not known")
	}
	return unit.Some(n * per * float64(s.Job.Ranks))
}

// epoch is the time of one: its steps and its start. Validation and checkpoints are apart.
func (s side) epoch() analysis.Est {
	n, ok := s.batches().Get()
	if !ok {
		return none(s.batches())
	}
	fetches, ok := s.Job.FetchesPerStep.Get()
	if !ok || !(fetches > 0) {
		return unit.None[stat.Estimate]("how many batches a step takes is not known")
	}
	start := s.loader.EpochStartSeconds
	if !start.IsKnown() {
		return unit.None[stat.Estimate]("how long an epoch takes to start is not known")
	}
	return sum(product(s.Step.MeanSeconds, n/fetches), start)
}

// perEpoch multiplies what a batch takes by the batches of all ranks' epochs. Such a mean over batches has no interval.
func (s side) perEpoch(of func(*analysis.Loader) analysis.Ratio) analysis.Est {
	n, ok := s.batches().Get()
	if !ok {
		return none(s.batches())
	}
	v := of(s.loader)
	x, ok := v.Get()
	if !ok {
		return none(v)
	}
	return plain(x*n*float64(max(1, s.Job.Ranks)), s.loader.Fetches)
}

func (s side) perBatch(of func(*analysis.Loader) analysis.Ratio) analysis.Est {
	if s.loader == nil {
		return unit.None[stat.Estimate](s.none)
	}
	v := of(s.loader)
	if x, ok := v.Get(); ok {
		return plain(x, s.loader.Fetches)
	}
	return none(v)
}

func (s side) built() analysis.Est {
	if s.loader == nil {
		return unit.None[stat.Estimate](s.none)
	}
	return s.loader.BuildSeconds
}

// start is what an epoch takes until its first batch.
func (s side) start() analysis.Est {
	if s.loader == nil {
		return unit.None[stat.Estimate](s.none)
	}
	return s.loader.EpochStartSeconds
}

// gpuHours turns the job's seconds into those of its GPUs.
func (s side) gpuHours(seconds analysis.Est) analysis.Est {
	if len(s.Result.GPUs) == 0 {
		return unit.None[stat.Estimate]("no GPU was sampled")
	}
	return product(seconds, float64(len(s.Result.GPUs))/3600)
}

// cost turns GPU-hours into money.
func (s side) cost(hours analysis.Est, price analysis.Ratio) analysis.Est {
	p, ok := price.Get()
	if !ok {
		return none(price)
	}
	for _, g := range s.Result.GPUs {
		if how, known := g.Shared.Get(); g.Parent.IsKnown() || known && how != "no" {
			return unit.None[stat.Estimate]("a GPU is shared or a slice, and what part of its price is the job's is not known")
		}
	}
	return product(hours, p)
}

// argument is what the training's loader was given, as JSON; "" where that is not known.
func (s side) argument(name string) string {
	if s.loader == nil {
		return ""
	}
	return string(s.loader.Arguments[name])
}

// number reads an argument that is a whole number.
func (s side) number(name string) (int, bool) {
	var n int
	if err := json.Unmarshal([]byte(s.argument(name)), &n); err != nil {
		return 0, false
	}
	return n, s.argument(name) != "null"
}

// plain is a number without an interval.
func plain(x float64, n int) analysis.Est {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return unit.Broken[stat.Estimate]("the result is not a number")
	}
	return unit.Some(stat.Exact(x).Estimate(n, stat.GradeB, "mean of batches"))
}

// none carries the reason of a missing number over to an estimate.
func none(m analysis.Ratio) analysis.Est {
	switch m.State() {
	case unit.Unsupported:
		return unit.NotSupported[stat.Estimate](m.Why())
	case unit.Failed:
		return unit.Broken[stat.Estimate](m.Why())
	}
	return unit.None[stat.Estimate](m.Why())
}

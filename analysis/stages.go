package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Stage is one kind of work in building a batch, by analysis/stage/CLASSES.md.
type Stage struct {
	Stage       string          `json:"stage"`         // read, decode, join, tokenise, transform, random augmentation, collate or other
	Share       Est             `json:"share"`         // of a batch's time
	OnCPUShare  Est             `json:"on_cpu_share"`  // of a batch's time: computing, or ready to and waiting for a core
	OffCPUShare Est             `json:"off_cpu_share"` // of a batch's time: waiting for anything else
	Seconds     Ratio           `json:"seconds_per_batch"`
	Functions   []StageFunction `json:"functions"` // by which it was told, the largest few
}

// StageFunction is a function of the job as a stack shows it.
type StageFunction struct {
	Function   string  `json:"function"` // file:function
	Share      float64 `json:"share"`    // of a batch's time, what it calls included
	OnCPUShare float64 `json:"on_cpu_share"`
}

// TransformTime is the exact time of one transform.
type TransformTime struct {
	Name           string  `json:"name"`
	Stage          string  `json:"stage"`
	Calls          float64 `json:"calls"`
	SecondsPerCall float64 `json:"seconds_per_call"`
	Seconds        Ratio   `json:"seconds_per_batch"`
	Share          Ratio   `json:"share"` // of a batch's time
}

// Sampling is what the stages were told by.
type Sampling struct {
	Samples      int   `json:"samples"`
	Processes    int   `json:"processes"`
	OutsideShare Ratio `json:"outside_share"` // of the samples: a part of the stack found no room
	Cores        Ratio `json:"cores"`         // what the looking took of a core, per process
	// CountersOnCPU is the on-CPU share of a batch by the kernel's counters, to hold the stages' sum against.
	CountersOnCPU Ratio `json:"counters_on_cpu_share"`
	// Agree tells whether the two differ by no more than chance and a tenth; if not, the stages are of grade C.
	Agree unit.Maybe[bool] `json:"counters_agree"`
}

const (
	looks      = "looks at the workers' stacks"
	noLooks    = "no stack of this loader's builders was looked at"
	fewLooks   = "too few looks at the stacks of this loader's builders"
	odd        = "looks at the workers' stacks, at odds with the kernel's counters"
	mostAtOdds = 0.1
)

// looked takes what was seen of the processes of one loader of a rank.
func (b *crew) looked(l *load.Loader) {
	for _, t := range l.Stacks {
		b.stacks.Merge(t)
	}
}

// stages writes where the time of a batch goes inside.
func (b *crew) stages(l *Loader) {
	l.Stages, l.Transforms = []Stage{}, b.transforms()
	t := &b.stacks
	l.Sampling = Sampling{Samples: t.Samples(), Processes: t.Processes, OutsideShare: unit.None[float64](noLooks),
		Cores: quotient(t.CPU, t.Wall, "the sampling did not time itself"), CountersOnCPU: unit.None[float64](noCost), Agree: unit.None[bool](noLooks)}
	if n := l.Sampling.Samples; n > 0 {
		l.Sampling.OutsideShare = unit.Some(min(1, float64(t.Outside)/float64(n)))
	}
	split, ok := stage.Of(t)
	if !ok {
		return
	}
	grade, source := b.held(l, &split)
	for _, p := range split.Parts {
		est := func(i stat.Interval) Est { return unit.Some(i.Estimate(split.Samples, grade, source)) }
		s := Stage{Stage: string(p.Class), Share: est(p.Share), OnCPUShare: est(p.On), OffCPUShare: est(p.Off), Functions: []StageFunction{}}
		if math.IsNaN(split.On) {
			s.OnCPUShare, s.OffCPUShare = unit.None[stat.Estimate](noThreadState), unit.None[stat.Estimate](noThreadState)
		}
		s.Seconds = unit.None[float64](noBuilds)
		if build, known := l.BuildSeconds.Get(); known {
			s.Seconds = unit.Some(build.Value * p.Share.Value)
		}
		for _, f := range p.Functions {
			s.Functions = append(s.Functions, StageFunction{f.Name, f.Share, f.On})
		}
		l.Stages = append(l.Stages, s)
	}
	t.Sort()
	l.Stacks = t
}

const noThreadState = "whether the builders ran or waited could not be read"

// held holds the split of the samples against the counters of the same loader: two witnesses that know nothing of each other.
func (b *crew) held(l *Loader, s *stage.Split) (stat.Grade, string) {
	counted, known := b.counted()
	if !known || math.IsNaN(s.On) {
		l.Sampling.Agree = unit.None[bool]("there are no counters to hold them against")
		return stat.GradeB, looks
	}
	l.Sampling.CountersOnCPU, l.Sampling.Agree = unit.Some(counted), unit.Some(agree(counted, s))
	if !agree(counted, s) {
		return stat.GradeC, odd
	}
	return stat.GradeB, looks
}

// counted is the on-CPU share of a batch by the kernel's counters.
func (b *crew) counted() (share float64, ok bool) {
	cpu, _ := b.costs[load.CostCPU].value("").Get()
	wall, known := b.costs[load.CostMeasured].value("").Get()
	queue, _ := b.costs[load.CostRunQueue].value("").Get()
	return min(1, (cpu+queue)/wall), known && wall > 0
}

func agree(counted float64, s *stage.Split) bool {
	chance := 2 * math.Sqrt(0.25/float64(s.Samples))
	return math.Abs(counted-s.On) <= mostAtOdds+chance
}

// inside is the split for those who build on it: nil where there is none, or the counters contradict it.
func (b *crew) inside() *stage.Split {
	s, ok := stage.Of(&b.stacks)
	if counted, known := b.counted(); !ok || math.IsNaN(s.On) || known && !agree(counted, &s) {
		return nil
	}
	return &s
}

// transforms are the exact times, largest first.
func (b *crew) transforms() []TransformTime {
	var classes stage.Classifier
	all := []TransformTime{}
	for name, v := range b.stacks.Transforms {
		if v.Calls <= 0 {
			continue
		}
		const lost = "records of the builders were lost"
		all = append(all, TransformTime{Name: name, Stage: string(classes.OfTransform(name)), Calls: v.Calls, SecondsPerCall: v.Seconds / v.Calls,
			Seconds: quotient(v.Seconds, b.stacks.Batches, lost), Share: quotient(v.Seconds, b.stacks.Seconds, lost)})
	}
	slices.SortFunc(all, func(x, y TransformTime) int {
		return cmp.Or(cmp.Compare(y.SecondsPerCall*y.Calls, x.SecondsPerCall*x.Calls), cmp.Compare(x.Name, y.Name))
	})
	return all
}

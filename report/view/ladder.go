package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Ladder is the picture that separates allocation from work: each rung a share of the time the GPUs were allocated.
type Ladder struct {
	Rungs []Rung // from allocated down to tensor; always all five
	Note  string // over which GPUs
	Words string // why there is no ladder; "" where at least one rung is known
}

// Rung is one step of the ladder.
type Rung struct {
	Name  string
	Share Quantity // whole percents, so that they align
	Note  string   // "what GPU-util shows", or for how many GPUs it is known
}

func ladder(r *analysis.Result) Ladder {
	if len(r.GPUs) == 0 {
		why, _ := noSM(r)
		return Ladder{Rungs: unknownRungs(why), Words: "What the GPUs did is unknown: " + why + "."}
	}
	rung := func(name, note string, pick func(analysis.GPU) analysis.Est) Rung {
		e, covered := analysis.OverGPUs(r.GPUs, pick)
		if covered > 0 && covered < len(r.GPUs) {
			note = joinNotes(note, "known for "+count(covered)+" of "+count(len(r.GPUs))+" GPUs")
		}
		q := estimate(e, wholePercentStyle)
		if q.Range != "" {
			note = joinNotes(note, q.Range+", grade "+q.Grade)
		}
		return Rung{name, q, note}
	}
	return Ladder{
		Note: "Shares of the time that " + plural(len(r.GPUs), "GPU was|GPUs were") + " allocated.",
		Rungs: []Rung{
			{termAllocated, known(1, wholePercentStyle), ""},
			rung(termHeld, "", func(g analysis.GPU) analysis.Est { return plain(g.HeldRatio, g) }),
			rung(termResident, residentNote(r.GPUs), func(g analysis.GPU) analysis.Est { return plain(g.ResidentRatio, g) }),
			rung(termSM, "", func(g analysis.GPU) analysis.Est { return g.SMActiveRatio }),
			rung(termTensor, "", func(g analysis.GPU) analysis.Est { return plain(g.TensorActiveRatio, g) }),
		},
	}
}

// residentNote says what the resident rung is: GPU-util, or the counter that stands in for it.
func residentNote(gpus []analysis.GPU) string {
	engine := 0
	for _, g := range gpus {
		for _, x := range g.Ladder {
			if x.Name == "resident" && strings.HasSuffix(x.Source, analysis.EngineSource) {
				engine++
			}
		}
	}
	switch engine {
	case 0:
		return "what GPU-util shows"
	case len(gpus):
		return "what the graphics engine's counter shows"
	}
	return "what GPU-util or the graphics engine's counter shows"
}

func unknownRungs(why string) []Rung {
	var out []Rung
	for _, name := range []string{termAllocated, termHeld, termResident, termSM, termTensor} {
		out = append(out, Rung{Name: name, Share: missing(unit.Unknown, why)})
	}
	return out
}

func joinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// plain turns a ratio without an interval into an estimate of one GPU, so that both kinds fold alike.
func plain(m analysis.Ratio, g analysis.GPU) analysis.Est {
	x, ok := m.Get()
	if !ok {
		return missingAs[stat.Estimate](m)
	}
	return unit.Some(stat.Estimate{Value: x, Low: x, High: x, Grade: g.Grade, Source: g.Source})
}

// missingAs carries a reason over to another type.
func missingAs[T, S any](m unit.Maybe[S]) unit.Maybe[T] {
	switch m.State() {
	case unit.Unsupported:
		return unit.NotSupported[T](m.Why())
	case unit.Failed:
		return unit.Broken[T](m.Why())
	}
	return unit.None[T](m.Why())
}

// jobSM is the SM activity of all GPUs together, and for how many of them it is known.
func jobSM(r *analysis.Result) (analysis.Est, int) {
	if why, none := noSM(r); none && len(r.GPUs) == 0 {
		return unit.None[stat.Estimate](why), 0
	}
	return r.SMActivity()
}

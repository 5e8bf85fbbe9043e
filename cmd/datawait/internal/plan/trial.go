package plan

import (
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// Trying says whether other loaders are tried.
type Trying int

// Whether other loaders are tried.
const (
	TryNone   Trying = iota
	TrySpare         // where much of a long budget is left
	TryAlways        // as far as the budget has room
)

// What of a budget must be left for loaders to be tried that nobody asked for. A trial takes a pair of blocks or two, and up to four of them are
// made; whoever gives less than a minute wants the answer soon.
const (
	spareBudget = time.Minute
	sparePart   = 0.4
)

// mostTrials bounds how many other loaders one run tries.
const mostTrials = 4

// trialLeg is what the planner calls the leg of a trial: every trial is a leg of its own, with a pace of its own.
func trialLeg(index int) recording.Leg { return recording.LegTrial + recording.Leg(index) }

func trialIndex(leg recording.Leg) (index int, ok bool) {
	return int(leg) - int(recording.LegTrial), leg >= recording.LegTrial
}

// legOf is the leg that a block belongs to, as the planner calls it.
func (p *Planner) legOf(b recording.Block) recording.Leg {
	leg := recording.Leg(b.Ref)
	if leg != recording.LegTrial || b.Block == 0 || int(b.Block) > len(p.blocks) {
		return leg
	}
	for i, t := range p.trials {
		if t == p.blocks[b.Block-1].Trial {
			return trialLeg(i)
		}
	}
	return leg
}

// ask wants to know which loaders are to be tried, as soon as everything else is planned: the last pair still runs then.
func (p *Planner) ask(v View) {
	if p.asked || p.phase != Testing || p.allMissing() > 0 || !p.mayTry(v) {
		return
	}
	p.asks = true
}

// mayTry reports whether there is time for trials.
func (p *Planner) mayTry(v View) bool {
	if p.opt.Try == TrySpare {
		return p.asks || p.opt.Budget >= spareBudget && float64(p.left(v)) >= sparePart*float64(p.opt.Budget)
	}
	return p.opt.Try == TryAlways
}

// TriesAll reports whether trials were asked for: then all that is ranked is worth one.
func (p *Planner) TriesAll() bool { return p.opt.Try == TryAlways }

// Try answers: these loaders are tried, the most important first, as far as the budget has room.
func (p *Planner) Try(trials []recording.Trial) {
	p.asks, p.asked = false, true
	for i, t := range trials[:min(len(trials), mostTrials)] {
		p.trials = append(p.trials, t)
		p.opt.Legs = append(p.opt.Legs, trialLeg(i))
		p.legs[trialLeg(i)] = &legState{settle: 1}
	}
}

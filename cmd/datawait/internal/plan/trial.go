package plan

import "github.com/datawait/datawait/probe/recording"

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
func (p *Planner) ask() {
	if p.opt.Try && !p.asked && p.phase == Testing && p.allMissing() == 0 {
		p.asks = true
	}
}

// Try answers: these loaders are tried, the most important first, as far as the budget has room.
func (p *Planner) Try(trials []recording.Trial) {
	p.asks, p.asked = false, true
	for i, t := range trials[:min(len(trials), mostTrials)] {
		p.trials = append(p.trials, t)
		p.opt.Legs = append(p.opt.Legs, trialLeg(i))
		p.legs[trialLeg(i)] = &legState{settle: 1}
	}
}

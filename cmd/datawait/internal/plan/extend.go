package plan

import (
	"fmt"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// tick is the longest time between two views that the planner reckons with.
const tick = 500 * time.Millisecond

// extend appends the next pair when the plan is about to run out, or plans the end.
func (p *Planner) extend(v View) {
	leg, wanted := p.nextLeg()
	e, ok := p.pace(v, recording.LegHostCached)
	if wanted {
		e, ok = p.pace(v, leg)
	}
	if !ok {
		return
	}
	far := furthest(v).Steps
	step := e.live
	if last := len(p.blocks) - 1; last >= 0 && far >= p.blocks[last].First {
		step = e.cached
	}
	earliest := far + p.lead(len(v.Ranks), step)
	if far+p.lead(len(v.Ranks), step)+uint64(tick/step) < p.plannedEnd() {
		return // the last pair is still far from its end
	}
	first := max(earliest, p.plannedEnd())
	if !wanted && p.asks {
		return // for the answer
	}
	if !wanted || len(p.blocks)+2 > recording.MaxBlocks {
		p.end(first)
		return
	}
	p.append(v, leg, e, first)
}

// append plans one pair from step first on: the longest of the candidates that epochs, time and steps have room for.
func (p *Planner) append(v View, leg recording.Leg, e paces, first uint64) {
	least := p.least(leg, e, minWindows)
	why := "" // the shortest one has no room
	for _, s := range p.candidates(v, leg, e, least) {
		var at uint64
		if at, why = p.room(v, leg, e, first, s); why != "" {
			continue
		}
		if p.history.live == nil {
			live, _ := p.livePace(v)
			p.history.live = &live
		}
		p.coarse = p.coarse || s.steps() < least.steps()
		p.book(leg, at, s, p.solo(leg, e))
		return
	}
	if len(p.blocks) == 0 {
		p.refuse("%s", why)
		return
	}
	p.end(first)
}

// candidates lists the lengths a pair may have, longest first: stretched where there is time, else as short as counts,
// else with fewer counter windows, because step times count without them. Those are for the first pair of a leg, and
// for wherever epochs have no room for longer ones.
func (p *Planner) candidates(v View, leg recording.Leg, e paces, least size) []size {
	list := []size{p.stretched(v, leg, e, least), least}
	if p.legs[leg].planned > 0 && p.epoch(v, e).holds(least.steps()) {
		return list
	}
	share := p.left(v) / time.Duration(max(p.allMissing(), 1))
	for windows := minWindows - 2; windows > 0; windows -= 2 {
		if s := p.least(leg, e, windows); s.takes(e)+e.settling(p.solo(leg, e)) <= share {
			list = append(list, s)
		}
	}
	return append(list, p.least(leg, e, 0))
}

// allMissing is how many pairs of any leg are still to be planned.
func (p *Planner) allMissing() (pairs int) {
	for _, l := range p.opt.Legs {
		pairs += p.missing(l)
	}
	return pairs
}

// room returns where a pair of this size can begin, or why it cannot: epochs, time and steps must have room for it.
func (p *Planner) room(v View, leg recording.Leg, e paces, first uint64, s size) (at uint64, why string) {
	at, ok := p.epoch(v, e).room(first, s.steps())
	switch now := furthest(v).Steps; {
	case !ok:
		return 0, fmt.Sprintf("an epoch is too short for a live and a cached block (%d steps together)", s.steps())
	case p.until(at, now, e)+s.takes(e)+e.settling(p.solo(leg, e)) > p.left(v):
		return 0, fmt.Sprintf("the budget of %v has no room for a live and a cached block (%v together)",
			p.opt.Budget, (s.takes(e) + e.settling(p.solo(leg, e))).Round(100*time.Millisecond))
	case p.opt.MaxStep > 0 && at+s.steps() > p.opt.MaxStep:
		return 0, fmt.Sprintf("%d steps have no room for a live and a cached block (%d steps together)", p.opt.MaxStep, s.steps())
	}
	return at, ""
}

// until is the time from step `now` to step `first` along what is planned already.
func (p *Planner) until(first, now uint64, e paces) time.Duration {
	cached, settling := uint64(0), time.Duration(0)
	for _, b := range p.blocks {
		if b.Leg == recording.LegLive || b.End <= now {
			continue
		}
		cached += b.End - max(b.First, now)
		if b.First >= now {
			settling += e.settling(b.Flags&recording.PlanSolo != 0)
		}
	}
	return settling + time.Duration(cached)*e.cached + time.Duration(first-now-cached)*e.live
}

// book adds the two blocks of a pair to the plan.
func (p *Planner) book(leg recording.Leg, first uint64, pair size, solo bool) {
	p.phase = Testing
	number := uint32(len(p.blocks))
	cached := recording.PlannedBlock{Block: number + 2, Leg: leg, First: first + pair.live, End: first + pair.steps()}
	if solo {
		cached.Flags = recording.PlanSolo
	}
	live := recording.PlannedBlock{Block: number + 1, Leg: recording.LegLive, First: first, End: first + pair.live}
	if i, ok := trialIndex(leg); ok {
		cached.Leg, cached.Trial = recording.LegTrial, p.trials[i]
	}
	p.blocks = append(p.blocks, live, cached)
	p.legs[leg].planned++
}

// solo reports whether the next block of a leg asks for single builds: the first blocks of the first leg do, unless the
// builds would take a tenth of the budget.
func (p *Planner) solo(leg recording.Leg, e paces) bool {
	return leg == p.opt.Legs[0] && p.legs[leg].planned < soloBlocks && e.settling(true)-e.settling(false) <= p.opt.Budget/10
}

// end plans the parking. The step cannot be before what a rank may have passed already.
func (p *Planner) end(step uint64) {
	p.phase, p.park = Parking, max(step, p.plannedEnd())
}

func (p *Planner) plannedEnd() uint64 {
	if len(p.blocks) == 0 {
		return 0
	}
	return p.blocks[len(p.blocks)-1].End
}

// nextLeg returns the leg of the next pair: all pairs of the first leg, then the others, the last one last.
func (p *Planner) nextLeg() (recording.Leg, bool) {
	for _, leg := range p.opt.Legs {
		if p.missing(leg) > 0 {
			return leg, true
		}
	}
	return 0, false
}

// missing is how many pairs of a leg are still to be planned. Blocks that did not count are made up for, once each.
func (p *Planner) missing(leg recording.Leg) int {
	s, wanted := p.legs[leg], p.opt.Extra
	if leg == p.opt.Legs[0] {
		wanted = p.opt.Pairs
	}
	if s.given != "" {
		return 0
	}
	return max(wanted+min(s.bad, wanted)-s.planned, 0)
}

// stretched lengthens the counted part as far as the time left allows for all pairs still wanted.
func (p *Planner) stretched(v View, leg recording.Leg, e paces, least size) size {
	pairs := p.allMissing()
	alone := least.takes(e) + e.settling(p.solo(leg, e))
	share := float64(p.left(v)) / float64(max(pairs, 1)) / float64(alone)
	counted := time.Duration(min(share*0.8, maxStretch) * minWindows * float64(p.opt.Window))
	if counted <= minWindows*p.opt.Window {
		return least
	}
	return p.sized(leg, e, min(counted, max(maxCounted, minWindows*p.opt.Window)))
}

package plan

import (
	"math"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// paces is what a step takes in each arm of a pair, and what settling a cached block takes apart from steps.
type paces struct {
	live, cached time.Duration // per step
	fetches      float64       // per step
	workers      int
	waits        bool          // the loader is the bottleneck, so its queue is empty in live steps
	fetch        time.Duration // per live fetch
	refill       time.Duration // until idle workers have filled the loader's queue
	settled      time.Duration // what the last cached block took to settle, when hasSettled
	hasSettled   bool
}

// What the hook does when a cached block settles, in fetches of the loader: it tops up a pool of batches to replay
// where copying them in live steps would have slowed those, and asks for single builds.
const (
	poolFetches = 10
	soloBuilds  = 4
)

// settling is the time in which a cached block makes no steps: what the last one took, before that an upper bound,
// because the pool is often filled already.
func (p paces) settling(solo bool) time.Duration {
	if p.hasSettled {
		return p.settled
	}
	if !p.waits {
		return 0
	}
	t := p.refill + poolFetches*p.fetch
	if solo {
		t += time.Duration(soloBuilds*p.workers) * p.fetch // a build takes what W workers deliver in
	}
	return t
}

// size is the length of a pair's blocks in steps.
type size struct{ live, cached uint64 }

func (s size) steps() uint64 { return s.live + s.cached }

func (s size) takes(p paces) time.Duration {
	return time.Duration(s.live)*p.live + time.Duration(s.cached)*p.cached
}

// pace estimates the arms of a pair. Before the first cached block has run, a cached step is guessed as a live one
// without its wait, but not below a quarter of it: launches that run ahead hide the device's time in the wait.
func (p *Planner) pace(v View, leg recording.Leg) (paces, bool) {
	live, ok := p.livePace(v)
	if !ok {
		return paces{}, false
	}
	r := slowest(v)
	est := paces{live: live.step, fetches: max(live.fetches, 1e-3), workers: r.Workers}
	if s := p.legs[recording.LegLive]; s.step > 0 {
		est.live = s.step
	}
	est.cached = p.cachedPace(leg, live)
	if share := float64(live.wait) / float64(live.step); share > 0.02 {
		// The loader is the bottleneck, so its queue is empty: W·P batches at one per live fetch.
		est.waits, est.fetch = true, time.Duration(float64(live.step)/est.fetches)
		est.refill = time.Duration(r.Workers*r.Prefetch) * est.fetch
	}
	est.settled, est.hasSettled = p.settled, p.hasSettled
	return est, true
}

// livePace is measured over what ran before the first block: later samples mix both arms.
func (p *Planner) livePace(v View) (pace, bool) {
	if p.history.live != nil {
		return *p.history.live, true
	}
	from := max(p.history.began(), v.Now-2*steadyFor)
	if got, ok := p.history.since(uint64(slowest(v).Workers), from); ok {
		return got, true
	}
	return p.history.since(1, p.history.began())
}

func (p *Planner) cachedPace(leg recording.Leg, live pace) time.Duration {
	for _, known := range []recording.Leg{leg, recording.LegHostCached} {
		if s := p.legs[known]; s != nil && s.step > 0 {
			return s.step
		}
	}
	if last := len(p.blocks) - 1; last >= 0 { // the first cached block may be under way
		if got, ok := p.history.since(p.blocks[last].First+minSteps/2, 0); ok {
			return got.step
		}
	}
	return max(live.step-live.wait, live.step/4, 50*time.Microsecond)
}

// least returns the shortest pair that counts: ten steps and `windows` counter windows in each arm, whole cycles of
// the workers, and what settling takes.
func (p *Planner) least(leg recording.Leg, e paces, windows int) size {
	return p.sized(leg, e, time.Duration(windows)*p.opt.Window)
}

// sized returns a pair whose arms count for at least the given time.
func (p *Planner) sized(leg recording.Leg, e paces, counted time.Duration) size {
	cycle := uint64(math.Ceil(float64(max(e.workers, 1)) / max(e.fetches, 1)))
	steps := func(step time.Duration) uint64 {
		n := uint64(math.Ceil(float64(counted) / float64(step)))
		return roundUp(max(n, minSteps), cycle)
	}
	// The hook settles a live block for a step and a fetch of every worker, a cached one for two steps, and then
	// begins to count where whole cycles are left.
	align := cycle - 1
	return size{
		live:   steps(e.live) + (1+cycle)*p.legs[recording.LegLive].settle + align,
		cached: steps(e.cached) + 2*p.legs[leg].settle + align + p.busyCycle(leg, cycle),
	}
}

// busyCycle is the cycle of the workers that the busy leg passes before it counts. A trial begins with an empty queue and passes
// two cycles of its own workers, as the hook does; then whole cycles of them count.
func (p *Planner) busyCycle(leg recording.Leg, cycle uint64) uint64 {
	if i, ok := trialIndex(leg); ok {
		return 3 * uint64(max(1, p.trials[i].Workers))
	}
	if leg == recording.LegHostCachedBusy {
		return cycle
	}
	return 0
}

func roundUp(n, multiple uint64) uint64 { return (n + multiple - 1) / multiple * multiple }

// quick is the time a plan needs at least from the view it was made of to the ranks that read it.
const quick = 100 * time.Millisecond

// lead is how many steps ahead of the furthest rank something may be planned: 32 (SPEC §5), and more where those pass
// before the plan is written. Where 32 steps would take an eighth of the budget, it is as many as take three seconds:
// ranks that exchange gradients are never further apart than a step or two. A rank alone has nobody to agree with; it
// needs the plan before it gets there.
func (p *Planner) lead(ranks int, step time.Duration) uint64 {
	if ranks == 1 {
		return max(4, uint64(tick/step)+1)
	}
	if recording.PlanAhead*step <= p.opt.Budget/8 {
		return max(recording.PlanAhead, uint64(quick/step))
	}
	return min(max(uint64(3*time.Second/step)+1, 4), recording.PlanAhead)
}

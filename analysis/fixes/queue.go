package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/unit"
)

// maxPrefetch is where a longer queue is no longer proposed: it costs memory in proportion.
const maxPrefetch = 8

// prefetchFactor lengthens the queue. It evens out builds that vary; it builds no batch sooner (scenario S03).
func prefetchFactor(j *job, s state) proposal {
	p := proposal{title: "a larger prefetch_factor", effort: oneArgument}
	switch {
	case j.p.Args.Unseen:
		p.zero = unseen
		return p
	case s.law.Workers == 0:
		p.zero = "there are no workers whose batches could queue up"
		return p
	}
	to := j.longEnough(s)
	if to <= s.law.Prefetch {
		p.zero = fmt.Sprintf("the queue holds %d batches per worker already", s.law.Prefetch)
		return p
	}
	p.title = fmt.Sprintf("prefetch_factor=%d instead of %d", to, s.law.Prefetch)
	p.how = withArguments(j, func(a *arguments) { a.prefetch = to })
	p.needs, p.sets.Prefetch = "memory for the longer queue, also in /dev/shm"+j.roomFor(s.law.Workers, to), unit.Some(to)
	p.noRoom = j.roomFor(s.law.Workers, to) != ""
	p.assumes = j.drawnBuilds()
	p.change = func(s *state) { s.law.Prefetch = to }
	p.reason = j.evenEnough(s)
	return p
}

// longEnough is the queue from which a doubled one does not win what is worth having. A queue must outlast the longest builds: with one
// batch in twenty that takes 0.4 s and steps of 20 ms, twelve batches still run out and twenty-four do not (F38).
func (j *job) longEnough(s state) int {
	to := min(maxPrefetch, 2*s.law.Prefetch)
	with := func(p int) float64 { return j.stepIn(apply(s, func(s *state) { s.law.Prefetch = p })) }
	for to > s.law.Prefetch && to < maxPrefetch {
		next := min(maxPrefetch, 2*to)
		if now := with(to); !(now-with(next) >= loader.NearEnough*now) {
			break
		}
		to = next
	}
	return to
}

// drawnBuilds says where a fix of the queue rests on builds that were not kept one by one.
func (j *job) drawnBuilds() []string {
	if len(j.p.Tape) > 0 {
		return nil
	}
	return []string{"build times vary as a lognormal does (single batches were not kept)"}
}

// outOfOrder delivers whatever batch is ready (F50: one slow batch stalls those behind it).
func outOfOrder(j *job, s state) proposal {
	if s.law.OutOfOrder || j.p.Args.Watched || s.law.Workers < 2 {
		return proposal{}
	}
	cost := oneArgument
	if !j.p.Args.InOrder.IsKnown() { // a loader older than 2.6 has no such argument
		cost = jobSetting
	}
	return proposal{
		title: "deliver batches out of order", effort: cost,
		how:     "DataLoader(..., in_order=False)",
		needs:   "PyTorch 2.6 or newer; the order of batches is no longer reproducible",
		assumes: j.drawnBuilds(),
		change:  func(s *state) { s.law.OutOfOrder = true },
	}
}

// evenEnough says why a longer queue wins nothing, where it does not.
func (j *job) evenEnough(s state) string {
	if b := s.law.Binding(); b != loader.ByCompute && b != loader.ByMain {
		return "batches are built too slowly, not too unevenly: a longer queue fills no faster"
	}
	if len(j.p.Tape) == 0 && !j.p.Batch.CV.IsKnown() {
		return "nothing says that build times vary"
	}
	return "the queue does not run empty"
}

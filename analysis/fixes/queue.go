package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/loader"
)

// uneven is the coefficient of variation of build times from which a longer queue can help. The law knows only means, so what it
// leaves unexplained of the step is all that evening out can win.
const uneven = 0.2

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
	if p.zero = j.evenEnough(s); p.zero != "" {
		return p
	}
	a := given(j.p.Args)
	to := min(maxPrefetch, 2*a.prefetch)
	if to <= a.prefetch {
		p.zero = fmt.Sprintf("the queue holds %d batches per worker already", a.prefetch)
		return p
	}
	p.title = fmt.Sprintf("prefetch_factor=%d instead of %d", to, a.prefetch)
	p.how = withArguments(j, func(a *arguments) { a.prefetch = to })
	p.needs = "memory for the longer queue, also in /dev/shm"
	p.assumes = []string{"half of the wait that uneven builds cause goes away (interval: none to all)"}
	j.evenOut(&p)
	return p
}

// outOfOrder delivers whatever batch is ready (F50: one slow batch stalls those behind it).
func outOfOrder(j *job, s state) proposal {
	inOrder, ok := j.p.Args.InOrder.Get()
	if ok && !inOrder || j.p.Args.Watched || s.law.Workers < 2 || j.evenEnough(s) != "" {
		return proposal{}
	}
	p := proposal{
		title: "deliver batches out of order", effort: oneArgument,
		how:     "DataLoader(..., in_order=False)",
		needs:   "PyTorch 2.6 or newer; the order of batches is no longer reproducible",
		assumes: []string{"half of the wait that uneven builds cause goes away (interval: none to all)"},
	}
	j.evenOut(&p)
	return p
}

// evenEnough says why evening out builds wins nothing; "" where it may.
func (j *job) evenEnough(s state) string {
	cv, ok := j.p.Batch.CV.Get()
	switch b := s.law.Binding(); {
	case b != loader.ByCompute && b != loader.ByMain && (cv < uneven || j.unexplained(s) <= 0):
		return "batches are built too slowly, not too unevenly: a longer queue fills no faster"
	case !ok:
		return "nothing says that build times vary"
	case cv < uneven || j.unexplained(s) <= 0:
		return "the queue does not run empty"
	}
	return ""
}

// unexplained is what a step takes beyond the law, less what a fix already took of it.
func (j *job) unexplained(s state) float64 {
	return math.Max(0, j.step-j.now.law.Step()-s.smooth)
}

// evenOut prices evening out builds at half of what the law leaves unexplained.
func (j *job) evenOut(p *proposal) {
	p.change = func(s *state) { s.smooth += j.unexplained(*s) / 2 }
	p.best = func(s *state) { s.smooth += j.unexplained(*s) }
	p.worst = func(*state) {}
}

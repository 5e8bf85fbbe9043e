package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/loader"
)

// workerThreads limits the threads of each worker (F06–F09, scenario S07).
//
// What one thread needs for a build cannot be seen while many build it. It lies between what the building thread takes by itself and what all of
// them take together. Where helpers take no more CPU than being woken costs, there is no sign that they work: four kinds of small
// transforms, with threads that spin and threads that do not, took one thread 1.2 to 2.5 times what the building thread had taken. Else
// nothing says where between the ends it lies, and the geometric mean is as far from either.
func workerThreads(j *job, s state) proposal {
	threads, many := j.model.TooManyThreads()
	l := s.law
	if !many || float64(threads*l.Workers) <= 2*l.WorkerCores || !l.Helped() || l.Terms().Cores < 0.8*j.step {
		return proposal{} // cores that are not full have room for threads
	}
	takes, as := func(own, all float64) float64 { return math.Sqrt(own * all) }, "as many times the CPU time that it takes now as all of them together take times that"
	if j.model.OnlyWake() {
		takes = func(own, all float64) float64 { return math.Min(1.5*own, 0.8*all) }
		as = "one and a half times the CPU time that it takes now, for the others take no more than being woken costs"
	}
	return proposal{
		title: "one thread per worker", effort: fewLines,
		how: "in worker_init_fn: torch.set_num_threads(1), cv2.setNumThreads(0), and OMP_NUM_THREADS=1 for the workers only",
		assumes: []string{fmt.Sprintf("%d threads in each of %d workers on %.3g cores mostly wait for each other: alone, the building thread takes %s "+
			"(interval: as much as now to four fifths of what all take together; F07, F08)", threads, l.Workers, l.WorkerCores, as)},
		change: oneThread(takes),
		best:   oneThread(func(own, _ float64) float64 { return own }),
		worst:  oneThread(func(_, all float64) float64 { return 0.8 * all }),
	}
}

// oneThread builds in a single thread, which takes so much CPU time where it and all its helpers together took that much. Nothing crowds the
// training thread then, which takes batches over as it does on a quiet machine.
func oneThread(takes func(own, all float64) float64) func(*state) {
	return func(s *state) {
		l := &s.law
		l.Work = takes(l.CPU, l.Work)
		l.CPU = l.Work
		l.Handoff, l.Feed = math.Min(l.Handoff, loader.TypicalHandoff), math.Min(l.Feed, loader.TypicalHandoff)
		s.collate = math.Min(s.collate, l.CPU)
	}
}

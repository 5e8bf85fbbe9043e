package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// binds says what keeps the step where it is after a change that did not help.
func (j *job) binds(s state) string {
	t, step := s.law.Terms(), j.stepIn(s)
	switch s.law.Binding() {
	case loader.ByCores:
		return fmt.Sprintf("the CPU time of building batches alone keeps %s full: %s of every step", phrase.Cores(min(s.law.WorkerCores, s.law.JobCores)), phrase.Duration(t.Cores))
	case loader.ByShared:
		return fmt.Sprintf("what all workers read from serves one build at a time, %s per step, however many ask", phrase.Duration(t.Shared))
	case loader.ByWorkers:
		if s.law.Workers == 0 {
			return fmt.Sprintf("the training process still builds every batch itself, %s per step", phrase.Duration(t.Workers))
		}
		return fmt.Sprintf("%s still %s %s for what a step's batches cost", phrase.Workers(s.law.Workers), phrase.Verb(s.law.Workers, "needs", "need"), phrase.Duration(t.Workers))
	case loader.ByMain:
		return fmt.Sprintf("the training process's own work sets the step: %s of %s", phrase.Duration(s.law.Host), phrase.Duration(step))
	}
	return fmt.Sprintf("a step takes %s with its batches in memory already; the loader keeps up", phrase.Duration(s.law.Compute))
}

// hides says why a faster device does not help a job that waits.
func (j *job) hides() string {
	t := j.now.law.Terms()
	share := 0.0
	if j.step > 0 {
		share = 1 - j.now.law.Compute/j.step
	}
	name := map[loader.Bottleneck]float64{loader.ByShared: t.Shared, loader.ByCores: t.Cores, loader.ByWorkers: t.Workers}[j.now.law.Binding()]
	return fmt.Sprintf("compute hides behind the data wait: batches arrive every %s, and %.0f %% of the step waits for them", phrase.Duration(name), 100*share)
}

// count writes a number of workers where the noun is clear.
func count(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

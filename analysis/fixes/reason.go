package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/loader"
)

// binds says what keeps the step where it is after a change that did not help.
func (j *job) binds(s state) string {
	t, step := s.law.Terms(), j.stepIn(s)
	switch s.law.Binding() {
	case loader.ByCores:
		return fmt.Sprintf("the CPU time of building batches alone keeps %s full: %s of every step", cores(s.law), ms(t.Cores))
	case loader.ByShared:
		return fmt.Sprintf("what all workers read from serves one build at a time, %s per step, however many ask", ms(t.Shared))
	case loader.ByWorkers:
		if s.law.Workers == 0 {
			return fmt.Sprintf("the training process still builds every batch itself, %s per step", ms(t.Workers))
		}
		return fmt.Sprintf("%s still %s %s for what a step's batches cost", workers(s.law.Workers), verb(s.law.Workers, "needs", "need"), ms(t.Workers))
	case loader.ByMain:
		return fmt.Sprintf("the training process's own work sets the step: %s of %s", ms(s.law.Host), ms(step))
	}
	return fmt.Sprintf("a step takes %s with its batches in memory already; the loader keeps up", ms(s.law.Compute))
}

// hides says why a faster device does not help a job that waits.
func (j *job) hides() string {
	t := j.now.law.Terms()
	share := 0.0
	if j.step > 0 {
		share = 1 - j.now.law.Compute/j.step
	}
	name := map[loader.Bottleneck]float64{loader.ByShared: t.Shared, loader.ByCores: t.Cores, loader.ByWorkers: t.Workers}[j.now.law.Binding()]
	return fmt.Sprintf("compute hides behind the data wait: batches arrive every %s, and %.0f %% of the step waits for them", ms(name), 100*share)
}

// ms writes seconds as milliseconds.
func ms(seconds float64) string {
	if seconds < 0.1 {
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	if seconds < 1 {
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// cores names the cores that builds get.
func cores(l loader.Law) string {
	k := min(l.WorkerCores, l.JobCores)
	switch {
	case k == 1:
		return "the one usable core"
	case k == 2:
		return "both usable cores"
	case k == float64(int(k)):
		return fmt.Sprintf("all %d usable cores", int(k))
	}
	return fmt.Sprintf("the %.1f usable cores", k)
}

// workers counts workers in words.
func workers(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// count writes a number of workers where the noun is clear.
func count(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

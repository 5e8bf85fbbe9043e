package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// cpuAffinity frees workers that were pinned to fewer cores than the job has (F12: three days of blaming Lustre; scenario S09).
func cpuAffinity(j *job, s state) proposal {
	affinity, ok := j.p.Host.Affinity.Get()
	l := s.law
	if !ok || !j.model.Known.Split || !(l.WorkerCores < 0.95*l.JobCores) {
		return proposal{}
	}
	to := l.JobCores
	if math.IsInf(to, 1) {
		to = j.perRank(j.p.Host.Online.Or(affinity))
	}
	if to <= l.WorkerCores {
		return proposal{}
	}
	return proposal{
		title: fmt.Sprintf("let the workers use all %.3g cores, not %.3g", to, l.WorkerCores), effort: fewLines,
		how:     "os.sched_setaffinity(0, range(os.cpu_count())) in worker_init_fn, or launch with all cores (srun --cpus-per-task, no taskset)",
		needs:   "cores that are idle now",
		change:  func(s *state) { s.law = s.law.WithCores(to, s.law.JobCores) },
		assumes: []string{"the other cores are free for this job"},
	}
}

// cpuLimit gives the job more cores: by lifting a limit where the host has them (F12–F15), else on another node. The gain is
// bounded by the cores themselves; it is linear in them at best (F36).
func cpuLimit(j *job, s state) proposal {
	l := s.law
	if !j.model.Known.Cores || !j.model.Known.Split || math.IsInf(l.JobCores, 1) || l.WorkerCores < 0.95*l.JobCores {
		return proposal{}
	}
	needed := math.Ceil((l.Fetches*l.Work + l.MainCPU) / math.Max(l.Compute, l.Fetches*l.Shared))
	if !(needed > l.JobCores) || float64(l.Workers) < 0.95*l.JobCores {
		return proposal{} // the cores that there are do not have a worker each yet, be the last one of them only partly free
	}
	online := j.perRank(j.p.Host.Online.Or(0))
	p := proposal{effort: hardware, needs: "cores of that number, for every rank"}
	to, worst := math.Min(needed, 2*l.JobCores), math.Min(needed, 1.5*l.JobCores)
	p.assumes = []string{"cores add up: twice as many build twice as fast (interval: one and a half times)"}
	p.how = fmt.Sprintf("a node type with more CPU cores per GPU, or fewer jobs on this one; with at least %.0f workers", to)
	if online >= 1.05*l.JobCores {
		to = math.Min(needed, online)
		worst = to
		p.effort, p.how = jobSetting, j.liftLimit(to)
		p.assumes = []string{"the other cores are free for this job"}
	}
	p.title = fmt.Sprintf("%s for each rank instead of %.2g", phrase.Count(to, "usable core"), l.JobCores)
	if online >= 1.05*l.JobCores && !j.limited() {
		p.title = fmt.Sprintf("other work off this host: it leaves %.2g of %s", l.JobCores, phrase.Count(to, "core"))
	}
	p.change, p.worst = withCores(to), withCores(worst)
	return p
}

// withCores changes K, and has as many workers as it takes to fill it.
func withCores(to float64) func(*state) {
	return func(s *state) {
		s.law = s.law.WithCores(to, to)
		if enough, ok := s.law.Enough(loader.NearEnough); ok && s.law.Workers > 0 {
			if w := min(enough, s.law.WorkerLimit()); w > s.law.Workers {
				s.setWorkers(w)
			}
		}
	}
}

// limited reports whether a quota or a cpuset keeps the job from cores of the host; else it is other work that does.
func (j *job) limited() bool {
	online := j.p.Host.Online.Or(math.Inf(1))
	return j.p.Host.Quota.Or(math.Inf(1)) < online || j.p.Host.Cpuset.Or(math.Inf(1)) < online
}

// liftLimit says which of the limits to lift.
func (j *job) liftLimit(to float64) string {
	h := j.p.Host
	n := math.Ceil(to * float64(max(h.Ranks, 1)))
	online := h.Online.Or(math.Inf(1))
	switch {
	case h.Quota.Or(math.Inf(1)) < online:
		return fmt.Sprintf("raise the CPU quota to %.0f (Kubernetes resources.limits.cpu, docker --cpus), and num_workers with it", n)
	case h.Cpuset.Or(math.Inf(1)) < online:
		return fmt.Sprintf("ask for %.0f cores (srun --cpus-per-task, docker --cpuset-cpus), and raise num_workers with it", n)
	}
	return "keep other work off this host while it trains (an exclusive node, or CPU requests that other jobs respect)"
}

// perRank divides what ranks of the host share.
func (j *job) perRank(n float64) float64 { return n / float64(max(j.p.Host.Ranks, 1)) }

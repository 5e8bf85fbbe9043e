package loader

import "math"

// fillCores finds K: what the workers get, and what they and the training process get together.
//
// Four limits give the same picture and each hides from a different API (F11–F15): quota, cpuset, affinity and what other jobs
// take. The least one counts. Ranks of the same job share what there is.
func (m *Model) fillCores() {
	h := m.Parameters.Host
	ranks := float64(max(h.Ranks, 1))
	m.Law.WorkerCores, m.Law.JobCores = math.Inf(1), math.Inf(1)
	job := math.Min(positive(h.Quota, math.Inf(1)), positive(h.Cpuset, math.Inf(1)))
	job = math.Min(job, m.unused())
	workers := math.Min(positive(h.Usable, math.Inf(1)), positive(h.Affinity, math.Inf(1)))
	workers = math.Min(workers, job)
	if math.IsInf(job, 1) && !m.affinityBinds() {
		job = workers
	}
	m.Known.Cores = !math.IsInf(workers, 1)
	if m.Known.Cores {
		m.Law.WorkerCores = workers / ranks
	} else {
		m.assume("the CPU is no limit (usable cores are not known)")
	}
	if !math.IsInf(job, 1) {
		m.Law.JobCores = job / ranks
	}
}

// unused is what the host has beside other jobs: they took Foreign, so at least the rest is to be had. What they took while nobody else
// asked is not theirs: the scheduler is fair, so a half at least goes to a job that asks. What this overlooks shows in the
// run queue of builds (fillStretch).
func (m *Model) unused() float64 {
	online := positive(m.Parameters.Host.Online, math.Inf(1))
	foreign, ok := m.Parameters.Host.Foreign.Get()
	if !ok || math.IsInf(online, 1) {
		return online
	}
	return math.Max(online-foreign, online/2)
}

// affinityBinds says whether the workers' own affinity, not a limit on the whole job, is the least.
func (m *Model) affinityBinds() bool {
	a, ok := m.Parameters.Host.Affinity.Get()
	return ok && a <= positive(m.Parameters.Host.Usable, a)
}

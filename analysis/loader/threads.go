package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/stat"
)

// TooManyThreads returns how many threads the libraries of each worker may use, where they are more than twice the cores together (F06–F09).
func (m Model) TooManyThreads() (each int, ok bool) {
	each, ok = m.Parameters.Host.ThreadsPerWorker.Get()
	l := m.Law
	return each, ok && each >= 2 && l.Workers > 0 && m.Known.Cores && float64(each*l.Workers) > 2*l.WorkerCores
}

// Helped says whether workers use clearly more CPU than their building threads do: helper threads work, or wait for each other spinning.
func (l Law) Helped() bool { return l.Work > 1.3*l.CPU }

// wakeUp is the CPU time, in seconds, that a thread may take which is woken for a part of the work, finds none, and goes back to sleep: 5 µs
// with OMP_WAIT_POLICY=PASSIVE, 33–40 µs where it spins first (libgomp of PyTorch 1.13, 64 threads on two cores). Those that had work to do
// took 70–260 µs.
const wakeUp = 50e-6

// OnlyWake says whether all that helper threads take of the CPU may be that they are woken and go back to sleep.
func (m Model) OnlyWake() bool {
	sleeps, ok := m.Parameters.Batch.Sleeps.Get()
	return ok && m.Law.Work-m.Law.CPU <= wakeUp*sleeps
}

// crowdedByHelpers says whether a building thread's helpers fill the cores.
func (m *Model) crowdedByHelpers() bool {
	_, many := m.TooManyThreads()
	return many && m.Law.Helped()
}

// withoutHelpers leaves out of the time off the CPU what a building thread waits for its own helper threads. The replay brings that back:
// it has them share the cores with everything else. While a build alone waits for anything else no thread of its worker computes, so
// at most what its CPU time leaves of it on all the cores is such a wait (scenario S07: 50 ms off the CPU in a build of 113 ms, whose
// threads take 117 ms of CPU on 1.05 cores).
func (m *Model) withoutHelpers(off stat.Estimate) stat.Estimate {
	wall, ok := m.Parameters.Solo.Wall.Get()
	if !ok {
		m.assume("building threads do not wait for their own helper threads (no build was measured alone)")
		m.unmeasured(0, off.Value, off.Value, func(l *Law, v float64) { l.Off = v })
		return off
	}
	busy := m.Law.Work / math.Min(m.Law.WorkerCores, m.Law.JobCores)
	if rest := less(wall, stat.Estimate{Value: busy, Low: busy, High: busy, N: wall.N}); rest.Value < off.Value {
		return rest
	}
	return off
}

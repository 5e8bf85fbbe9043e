package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/stat"
)

// fillBuild finds L, a build that nothing holds up, and its CPU part.
//
// L measured while W workers share K cores is not the L of one worker with a core to itself: W = 4 builds of 48 ms CPU on two
// cores take 96 ms each (scenario S05). Run-queue time is therefore left out of L: B/K brings it back where cores are short.
// A build measured alone is better still, because it leaves out all that workers do to each other.
func (m *Model) fillBuild() {
	b := m.Parameters.Batch
	cpu, okCPU := b.CPU.Get()
	m.Law.CPU, m.Law.Work = cpu.Value, math.Max(cpu.Value, positive(b.ProcessCPU, 0))
	off, ok := m.offCPU(cpu, okCPU)
	if !ok {
		m.assume("the time to build a batch is not known, so workers, cores and storage take no part")
		m.Law.CPU, m.Law.Work = 0, 0
		return
	}
	m.Known.Build, m.Known.Split = true, okCPU
	if m.crowdedByHelpers() {
		off = m.withoutHelpers(off)
	}
	if !okCPU {
		m.assume("a build is waiting, not computing (its CPU time was not seen)")
	}
	m.Law.Off = off.Value
	m.grade = stat.Worse(m.grade, off.Grade)
	m.vary(off, func(l *Law, v float64) { l.Off = v })
	if okCPU {
		m.grade = stat.Worse(m.grade, cpu.Grade)
		work := m.Law.Work - m.Law.CPU
		m.vary(cpu, func(l *Law, v float64) { l.CPU, l.Work = v, v+work })
	}
}

// longestStretch is the part of a CPU second by which neighbours are taken to stretch it. What a build waits for a core beyond that it
// waits at wake-ups, however little it computes: eight samples that only sleep wait eight times.
const longestStretch = 0.25

// fillQueue keeps run-queue time that the replay does not bring back by itself. In cores that it fills, a longer queue than its own
// says that the job gets less of them than it may use (other jobs, other ranks); below that, something else makes builds wait
// for a core. Nothing here looks at the measured step: whether builds of that length explain it is for the check to say.
func (m *Model) fillQueue() {
	l := &m.Law
	runq, ok := m.Parameters.Batch.RunQueue.Get()
	if !ok || l.CPU <= 0 || !m.Known.Compute {
		return
	}
	out := m.film.play(*l)
	excess := runq - out.Queued
	if !(excess > unworthy*(l.Off+l.CPU)) {
		return
	}
	if out.Queued > 0 && l.Workers > 0 && l.Terms().Cores >= (1-Gate/2)*out.Seconds {
		l.lessCores((l.Off + l.CPU + out.Queued) / (l.Off + l.CPU + runq))
		return
	}
	l.Stretch = 1 + math.Min(excess/l.CPU, longestStretch)
	l.Queue = excess - (l.Stretch-1)*l.CPU
}

// unworthy is the part of a build below which run-queue time is no sign of anything.
const unworthy = 0.01

// lessCores leaves a part of the cores that bind.
func (l *Law) lessCores(part float64) {
	if l.JobCores <= l.WorkerCores {
		l.JobCores *= part
	}
	l.WorkerCores *= part
}

// offCPU returns the off-CPU part of an undisturbed build from the best witness there is.
func (m *Model) offCPU(cpu stat.Estimate, okCPU bool) (stat.Estimate, bool) {
	b, solo := m.Parameters.Batch, m.Parameters.Solo
	if off, ok := solo.OffCPU.Get(); ok {
		m.Known.Alone = true
		return off, true
	}
	if wall, ok := solo.Wall.Get(); ok {
		m.Known.Alone = true
		return less(wall, cpu), true
	}
	m.Known.Alone = m.Law.Workers <= 1
	if off, ok := b.OffCPU.Get(); ok {
		return off, true
	}
	wall, ok := m.wall()
	if !ok {
		return stat.Estimate{}, false
	}
	off := less(wall, cpu)
	if runq, ok := b.RunQueue.Get(); ok {
		return less(off, stat.Estimate{Value: runq, Low: runq, High: runq, N: off.N}), true
	}
	return m.withoutQueue(off, cpu, okCPU), true
}

// wall is a build's wall time; without workers it is what next() takes.
func (m *Model) wall() (stat.Estimate, bool) {
	wall, ok := m.Parameters.Batch.Wall.Get()
	if ok || m.Law.Workers > 0 || m.Parameters.Args.Unseen {
		return wall, ok
	}
	wait, ok := m.Parameters.Step.Wait.Get()
	f := m.Law.Fetches
	wait.Value, wait.Low, wait.High = wait.Value/f, wait.Low/f, wait.High/f
	return wait, ok
}

// withoutQueue takes an estimate of the unseen run-queue time out of wall − CPU: where all cores are busy with builds, W
// workers on K cores stretch each CPU second to W/K. Either way the interval covers both readings.
func (m *Model) withoutQueue(off, cpu stat.Estimate, okCPU bool) stat.Estimate {
	if !okCPU || m.Law.Workers <= 1 {
		return off
	}
	stretch := math.Max(1, float64(m.Law.Workers)/m.Law.WorkerCores)
	least := math.Max(0, off.Value-(stretch-1)*cpu.Value)
	t, ok := m.Parameters.Step.Seconds.Get()
	if ok && m.Law.Terms().Cores > (1-Gate)*t.Value {
		off.Value = least
	}
	off.Low, off.Grade = math.Min(off.Low, least), stat.GradeC
	if stretch > 1 {
		m.assume("run-queue time was not seen; off-CPU time may contain some")
	}
	return off
}

package loader

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/loader/replay"
	"github.com/datawait/datawait/analysis/stat"
)

// Model is the law filled in from measurements, how far each input may be off, and whether the replay reproduces the step that ran.
type Model struct {
	Parameters Parameters
	Law        Law // of the configuration that ran
	Pace       Est // seconds from one step to the next, by whoever sets it: the training thread, or the device behind it

	// Trusted says that the replay came within [Gate] of the measured step, and its wait of the measured wait. Reason is why not,
	// and what to record instead.
	Trusted bool
	Reason  string
	Error   Num // |replayed − measured| ÷ measured step

	// Draws is how many times the recorded batches are drawn anew for the interval of a prediction; 0 = 500.
	Draws int

	Known   Knowledge
	Assumed []string // what the law takes for granted because it was not measured

	ranges []inputRange
	grade  stat.Grade
	film   *film
}

// Knowledge says which inputs of the law were measured. An input that was not takes no part in the law.
type Knowledge struct {
	Step    bool // a steady step
	Compute bool // C
	Cached  bool // … by the cached-data test, not inferred from the wait
	Build   bool // L
	Split   bool // … and how much of it is CPU
	Alone   bool // … in builds that nothing else disturbed
	Shared  bool // whether builds hold each other up outside the CPU
	Cores   bool // K
	Host    bool // how much of C is the training process on the CPU with the device idle
}

// Gate is the relative error of the replay on the configuration that ran, above which nothing is predicted (DESIGN §7).
const Gate = 0.10

// waitGate is how much of a step the replayed wait may be off. It is wider than Gate, because C is of a quiet machine and the time
// outside next() is not.
const waitGate = 0.15

// fewest steady steps that a ranking is made from, and fewest rounds of the workers in them: a handful shows one arrangement of the
// queue, not how it goes on.
const (
	fewestSteps  = 20
	fewestRounds = 2
)

// New fills the law in from what was measured and checks it against the step that ran.
func New(p Parameters) Model {
	p = clean(p)
	m := Model{Parameters: p, grade: stat.GradeA, film: newFilm(p)}
	m.Law.Workers, m.Law.OutOfOrder = p.atWork(), !p.Args.InOrder.Or(true)
	m.Law.Prefetch = max(1, min(p.Args.Prefetch.Or(DefaultPrefetch), mostPrefetch))
	m.Law.Fetches = positive(p.Step.Fetches, 1)
	m.fillCompute()
	m.film.couple(p, m.Known.Cached)
	if m.Law.Ahead > 0 {
		m.film.forgetOutside()
	}
	m.fillHost()
	m.fillCores()
	m.fillBuild()
	m.fillHandoff()
	m.fillShared()
	m.fillQueue()
	m.fillDepth()
	m.check()
	return m
}

// DefaultPrefetch is PyTorch's prefetch_factor where none is given (torch/utils/data/dataloader.py, 1.13 to 2.9); mostPrefetch bounds
// what a recording may claim.
const (
	DefaultPrefetch = 2
	mostPrefetch    = 1 << 10
)

// check replays the configuration that ran, and compares.
func (m *Model) check() {
	t, ok := m.Pace.Get()
	if !ok || !(t.Value > 0) {
		m.Reason = "no steady step was measured: too few steps lie outside epoch starts and warm-up. Record longer epochs or a longer run"
		return
	}
	m.Known.Step = true
	if !m.Known.Compute {
		m.Reason = "neither the cached-data test nor the data wait says how long a step takes without loading. Record with the hook in the training process, or use diagnose"
		return
	}
	if m.Reason = m.tooLittle(); m.Reason != "" {
		return
	}
	if m.Law.Workers > replay.MostWorkers || m.Law.Workers*m.Law.Prefetch > replay.MostQueued {
		m.Reason = fmt.Sprintf("%d workers with %d batches each are more than is replayed", m.Law.Workers, m.Law.Prefetch)
		return
	}
	played := m.film.play(m.Law)
	e := math.Abs(played.Seconds-t.Value) / t.Value
	m.Error = Num{}
	if !math.IsNaN(e) && !math.IsInf(e, 0) {
		m.Error = some(e)
	}
	if !(e <= Gate) {
		m.Reason = m.explain(played.Seconds, t.Value)
		return
	}
	if wait, ok := m.Parameters.Step.Wait.Get(); ok && m.Law.Ahead == 0 {
		off := played.Wait - wait.Value
		if !(math.Abs(off) <= waitGate*t.Value+m.Parameters.Step.Interference.Or(0)) {
			m.Reason = fmt.Sprintf("the replay waits %.1f ms for data in a step of %.1f ms, the run waited %.1f ms: the step's own work took another time than "+
				"with its batches in memory, or something holds batches up that was not measured. Repeat diagnose on a quiet machine",
				played.Wait*1e3, t.Value*1e3, wait.Value*1e3)
			return
		}
	}
	m.Trusted = true
}

// tooLittle says why the steps that were measured are too few to know what one takes; "" if they are not. A mean that may be next to nothing
// by its own spread is that of a few steps which took nearly all of the time: a read that hangs for 40 s after eighty of 9 ms (scenario S29).
func (m *Model) tooLittle() string {
	t := m.Parameters.Step.Seconds.Or(noEstimate)
	if need := max(fewestSteps, int(math.Ceil(float64(fewestRounds*m.Law.Workers)/m.Law.Fetches))); t.N < need {
		return fmt.Sprintf("only %s measured; a ranking needs %d. Record a longer run", plural(t.N, "steady step was", "steady steps were"), need)
	}
	if t.Low > 0 {
		return ""
	}
	return fmt.Sprintf("a few of the %d steady steps took nearly all of the time: what a step takes on average is not known (%.1f ms, 95 %% interval 0 to %.1f). Record a longer run",
		t.N, t.Value*1e3, t.High*1e3)
}

// plural writes a number with what it counts.
func plural(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// explain says why the law missed the measured step and what to record to learn more.
func (m *Model) explain(predicted, measured float64) string {
	miss := fmt.Sprintf("the replay gives %.1f ms for a step that took %.1f ms", predicted*1e3, measured*1e3)
	switch {
	case predicted < measured && !m.Known.Build && m.Parameters.Args.Watched:
		return miss + ": the time to build a batch was not seen. Put `with datawait.building(index):` around the code that builds one"
	case predicted < measured && !m.Known.Build:
		return miss + ": the time to build a batch was not seen. Record with the hook in the workers (diagnose says why it was not loaded)"
	case predicted < measured && !m.Known.Cores:
		return miss + ": the cores that the job may use are not known. Record where cgroup limits and affinity can be read"
	case predicted < measured && !m.Known.Cached:
		return miss + ": the step without loading was inferred, not measured. Use diagnose, whose cached-data test measures it"
	case predicted < measured:
		return miss + ": something that was not measured holds the step up (a lock, a limit on the store, another job). Record a quiet run of at least 200 steps"
	case m.Law.Binding() == ByCompute || m.Law.Binding() == ByMain:
		return miss + ": cached steps were slower than live ones, so the two did not run under the same conditions. Repeat diagnose on a quiet machine"
	}
	return miss + ": batches were delivered faster than the build times allow, so build times and steps do not belong together. Record more than one epoch of steady steps"
}

// Summary returns what the report says of the model.
func (m Model) Summary() Summary {
	s := Summary{
		Trusted: m.Trusted, Name: "replay", ReplayError: m.Error, Reason: m.Reason,
		UsableCores: m.Parameters.Host.Usable,
	}
	t := m.Law.Terms()
	if m.Known.Compute {
		s.ComputeSeconds = some(m.Law.Compute)
		s.Binding = string(m.Law.Binding())
	} else {
		s.ComputeSeconds = missing("neither a cached-data test nor a data wait was measured")
	}
	s.SharedSeconds = known(m.Known.Shared && m.Law.Workers > 0, t.Shared, "no builds were measured alone and side by side")
	s.WorkerSeconds = known(m.Known.Build, t.Workers, "the time to build a batch was not seen")
	s.CoreSeconds = known(m.Known.Split && m.Known.Cores && m.Law.Workers > 0, t.Cores, "CPU time per batch or usable cores were not seen")
	return s
}

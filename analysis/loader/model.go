package loader

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/stat"
)

// Model is the law filled in from measurements, how far each input may be off, and whether it reproduces the step that ran.
type Model struct {
	Parameters Parameters
	Law        Law // of the configuration that ran

	// Trusted says that the law came within [Gate] of the measured step. Reason is why not, and what to record instead.
	Trusted bool
	Reason  string
	Error   Num // |predicted − measured| ÷ measured

	Known   Knowledge
	Assumed []string // what the law takes for granted because it was not measured

	ranges []inputRange
	grade  stat.Grade
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

// Gate is the relative error of the law on the configuration that ran, above which nothing is predicted (DESIGN §7).
const Gate = 0.10

// New fills the law in from what was measured and checks it against the step that ran.
func New(p Parameters) Model {
	p = clean(p)
	m := Model{Parameters: p, grade: stat.GradeA}
	m.Law.Workers = p.atWork()
	m.Law.Fetches = positive(p.Step.Fetches, 1)
	m.fillCompute()
	m.fillHost()
	m.fillCores()
	m.fillBuild()
	m.fillHandoff()
	m.fillShared()
	m.check()
	return m
}

// check compares the law with the measured step.
func (m *Model) check() {
	t, ok := m.Parameters.Step.Seconds.Get()
	if !ok || !(t.Value > 0) {
		m.Reason = "no steady step was measured: too few steps lie outside epoch starts and warm-up. Record longer epochs or a longer run"
		return
	}
	m.Known.Step = true
	if !m.Known.Compute {
		m.Reason = "neither the cached-data test nor the data wait says how long a step takes without loading. Record with the hook in the training process, or use diagnose"
		return
	}
	predicted := m.Law.Step()
	e := math.Abs(predicted-t.Value) / t.Value
	m.Error = Num{}
	if !math.IsNaN(e) && !math.IsInf(e, 0) {
		m.Error = some(e)
	}
	if !(e <= Gate) {
		m.Reason = m.explain(predicted, t.Value)
		return
	}
	m.Trusted = true
}

// explain says why the law missed the measured step and what to record to learn more.
func (m *Model) explain(predicted, measured float64) string {
	miss := fmt.Sprintf("the law gives %.1f ms for a step that took %.1f ms", predicted*1e3, measured*1e3)
	cv := m.Parameters.Batch.CV.Or(0)
	switch {
	case predicted < measured && !m.Known.Build && m.Parameters.Args.Watched:
		return miss + ": the time to build a batch was not seen. Put `with datawait.building(index):` around the code that builds one"
	case predicted < measured && !m.Known.Build:
		return miss + ": the time to build a batch was not seen. Record with the hook in the workers (diagnose says why it was not loaded)"
	case predicted < measured && cv > 0.3:
		return miss + fmt.Sprintf(": build times vary too much for it (standard deviation %.0f %% of the mean). A replay of the recorded batches is needed", cv*100)
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
		Trusted: m.Trusted, Name: "law", ReplayError: m.Error, Reason: m.Reason,
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

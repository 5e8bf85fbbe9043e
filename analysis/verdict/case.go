package verdict

import (
	"math"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Shares of a step, or of the wall time, from which something is said.
const (
	Least   = 0.03 // less than this is not worth a word
	Notable = 0.05 // up to here a step counts as no longer than with its batches in memory
	Small   = 0.10 // up to here a finding is called small: real, not urgent
	Heavy   = 0.15 // from here a hand-off that costs no more than anywhere still costs too much: a loader that keeps up shows 5–9 % at C = 15 ms
)

// subject is what is judged, with the numbers that several signatures need.
type subject struct {
	f Facts
	m loader.Model
	p loader.Parameters
	l loader.Law
	t loader.Terms

	step float64 // T, at the pace of whoever sets it
	// gain is the share of a step that a perfect loader would win: what it takes beyond C and the hand-off. Negative is 0.
	gain  float64
	judge bool // step and C are known
}

func newSubject(f Facts, m loader.Model) *subject {
	s := &subject{f: f, m: m, p: m.Parameters, l: m.Law, t: m.Law.Terms()}
	t, ok := m.Pace.Get()
	if !ok || !(t.Value > 0) || !m.Known.Compute {
		return s
	}
	s.judge, s.step = true, t.Value
	s.gain = math.Max(0, (t.Value-s.l.Compute-s.handoff())/t.Value)
	return s
}

// handoff is what a step needs for hand-offs however fast the loader is. It is never read as waiting for data: a loader that keeps up
// shows 5–9 % of it at C = 15 ms.
func (s *subject) handoff() float64 {
	if s.l.Workers == 0 {
		return 0
	}
	if s.p.Step.Handoff.IsKnown() || s.p.Step.HandoffFloor.IsKnown() {
		return s.l.Fetches * s.l.Handoff
	}
	return s.l.Fetches * loader.TypicalHandoff
}

// waits says whether data wait is worth a word.
func (s *subject) waits() bool { return s.judge && s.gain >= Least }

// share is a part of the step.
func (s *subject) share(seconds float64) float64 {
	if s.step <= 0 {
		return 0
	}
	return math.Max(0, math.Min(1, seconds/s.step))
}

// offCPU says whether builds mostly wait.
func (s *subject) offCPU() bool { return s.m.Known.Build && s.l.Off >= 0.5*s.l.Build() }

// onCPU says whether builds mostly compute.
func (s *subject) onCPU() bool { return s.m.Known.Split && s.l.Off < 0.5*s.l.Build() }

// spareCores says whether the cores have time for more builds than now.
func (s *subject) spareCores() bool {
	return s.t.Cores <= 0.8*s.step || s.l.Workers == 0 && s.l.Work*s.l.Fetches <= 0.8*s.step*s.l.WorkerCores
}

// sure scales a confidence by what the numbers rest on.
func (s *subject) sure(base float64) float64 {
	if !s.m.Trusted {
		base *= 0.6
	}
	if !s.m.Known.Cached {
		base *= 0.9
	}
	if n := s.p.Step.Seconds.Or(stat.Estimate{}).N; n < 20 {
		base *= 0.8
	}
	if s.f.TestConclusion.Or("") == "inconclusive" {
		base *= 0.8
	}
	return math.Round(100*math.Min(base, 0.99)) / 100
}

// noShare is the share of a finding that takes nothing from a step.
func noShare(why string) loader.Num { return unit.None[float64](why) }

// known wraps a share that was worked out.
func known(v float64) loader.Num { return unit.Float(v, "not a number") }

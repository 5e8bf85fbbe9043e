package plan

import (
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// answer makes the planner's question be answered while the job runs.
func (j job) tried(t *testing.T, p *Planner, trials ...recording.Trial) outcome {
	t.Helper()
	asked := 0
	j.asks = func() {
		asked++
		p.Try(trials)
	}
	out := j.run(t, p)
	if asked != 1 {
		t.Errorf("asked %d times what to try", asked)
	}
	return out
}

// TestTrialsFollowTheLegs: once everything else is planned the planner asks what to try, and tries it in pairs as the legs are.
func TestTrialsFollowTheLegs(t *testing.T) {
	o := Defaults(90 * time.Second)
	o.Try = TryAlways
	p := New(o)
	trials := []recording.Trial{{Workers: 4, Prefetch: 2}, {Workers: 2, Prefetch: 2, Memoised: true}}
	j := job{step: map[recording.Leg]time.Duration{recording.LegLive: 60 * ms, recording.LegHostCached: 20 * ms, recording.LegTrial: 30 * ms}, wait: 40 * ms, start: time.Second, workers: 2}
	out := j.tried(t, p, trials...)
	count := map[recording.Trial]int{}
	lastLeg := -1
	for i, b := range out.blocks {
		if b.Leg == recording.LegTrial {
			count[b.Trial]++
			if out.blocks[i-1].Leg != recording.LegLive {
				t.Errorf("block %d is tried without a live one before it", b.Block)
			}
		} else if b.Leg != recording.LegLive {
			lastLeg = i
		}
	}
	if count[trials[0]] != 2 || count[trials[1]] != 2 || len(count) != 2 {
		t.Errorf("tried %v", count)
	}
	if lastLeg > len(out.blocks)-2*len(trials)*2 {
		t.Errorf("a leg comes after a trial: %v", out.blocks)
	}
	if out.last.Phase != Parking || out.ended > o.Budget {
		t.Errorf("ended in %v after %v", out.last.Phase, out.ended)
	}
}

// TestNothingToTry: an empty answer ends the test as if nobody had asked.
func TestNothingToTry(t *testing.T) {
	o := Defaults(90 * time.Second)
	o.Try = TryAlways
	j := job{step: map[recording.Leg]time.Duration{recording.LegLive: 60 * ms, recording.LegHostCached: 20 * ms}, wait: 40 * ms, start: time.Second, workers: 2}
	if out := j.tried(t, New(o)); out.last.Phase != Parking || out.good[recording.LegTrial] != 0 {
		t.Errorf("%+v", out.last)
	}
}

// TestTriesUnasked: where nobody said whether to try, it is asked what to try if much of a long budget is left, and the run keeps its length
// otherwise.
func TestTriesUnasked(t *testing.T) {
	for _, c := range []struct {
		name   string
		try    Trying
		budget time.Duration
		live   time.Duration // a step
		asks   bool
	}{
		{"three minutes", TrySpare, 3 * time.Minute, 60 * ms, true},
		{"three minutes, told not to", TryNone, 3 * time.Minute, 60 * ms, false},
		{"half a minute", TrySpare, 30 * time.Second, 20 * ms, false},
		{"half a minute, told to", TryAlways, 30 * time.Second, 20 * ms, true},
		{"slow steps, which take the budget", TrySpare, 70 * time.Second, 600 * ms, false},
	} {
		o := Defaults(c.budget)
		o.Try = c.try
		p := New(o)
		asked := false
		j := job{step: map[recording.Leg]time.Duration{recording.LegLive: c.live, recording.LegHostCached: c.live / 3}, wait: 2 * c.live / 3, start: time.Second, workers: 2}
		j.asks = func() {
			asked = true
			p.Try(nil)
		}
		if out := j.run(t, p); asked != c.asks || out.ended > c.budget {
			t.Errorf("%s: asked %v, ended after %v in %v", c.name, asked, out.ended, out.last.Phase)
		}
	}
}

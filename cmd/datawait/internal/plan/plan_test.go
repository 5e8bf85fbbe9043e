package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

const ms = time.Millisecond

// job is a training run as the planner sees one: it takes steps, obeys the plan, and reports blocks.
type job struct {
	step    map[recording.Leg]time.Duration // per leg
	wait    time.Duration                   // of a live step
	start   time.Duration                   // until the first step
	workers int
	epoch   uint64 // steps, 0 = not known
	ranks   int
	fails   recording.Leg // a leg that raises
	settle  time.Duration // of a cached block, in which no step is made
	asks    func()        // answers what to try
}

// outcome is what a run under a planner came to.
type outcome struct {
	ended  time.Duration
	last   Decision
	good   map[recording.Leg]int
	blocks []recording.PlannedBlock
}

func (j job) pace(leg recording.Leg) time.Duration {
	if d, ok := j.step[leg]; ok {
		return d
	}
	return j.step[recording.LegHostCached]
}

// run plays the job against a planner until it parks, or a while past the budget.
func (j job) run(t *testing.T, p *Planner) outcome {
	t.Helper()
	out := outcome{good: map[recording.Leg]int{}}
	var d Decision
	done, step, wait := 0, uint64(0), time.Duration(0)
	var began time.Duration // of the counted part of the block that runs
	now, next := time.Duration(0), j.start
	for now < p.opt.Budget+10*time.Second {
		now += 150 * ms
		for next <= now && !(d.Phase == Parking && step >= d.Park) && !d.Now {
			step++
			leg := legAt(d.Blocks, step)
			if leg == recording.LegLive {
				wait += j.wait
			}
			if done < len(d.Blocks) && step == d.Blocks[done].First+2 {
				began = next
			}
			for done < len(d.Blocks) && step >= d.Blocks[done].End {
				b := j.finished(d.Blocks[done], began, next)
				if b.Flags&recording.BlockVoid == 0 {
					out.good[recording.Leg(b.Ref)]++
				}
				p.Finished(b)
				done++
			}
			next += j.pace(leg)
			if done < len(d.Blocks) && d.Blocks[done].Leg != recording.LegLive && step == d.Blocks[done].First {
				next += j.settle
			}
		}
		planned := len(d.Blocks)
		d = p.Next(j.view(now, step, wait))
		if d.Asks && j.asks != nil {
			j.asks()
		}
		j.check(t, p, d, planned, step)
		if (d.Phase == Parking && step >= d.Park) || d.Now {
			break
		}
	}
	out.ended, out.last, out.blocks = now, d, d.Blocks
	return out
}

func (j job) view(now time.Duration, step uint64, wait time.Duration) View {
	v := View{Now: now}
	if step == 0 {
		return v
	}
	for range max(j.ranks, 1) {
		r := Rank{Steps: step, Fetches: step, Wait: wait, Workers: j.workers, Prefetch: 2}
		if j.epoch > 0 {
			r.EpochLength, r.EpochIndex = j.epoch, step%j.epoch
		}
		v.Ranks = append(v.Ranks, r)
	}
	return v
}

func (j job) finished(b recording.PlannedBlock, began, ended time.Duration) recording.Block {
	out := recording.Block{Ref: uint16(b.Leg), Block: b.Block, Steps: uint32(b.End-b.First) - 2, Begin: uint64(began), End: uint64(ended)}
	switch {
	case j.epoch > 0 && (b.First/j.epoch != b.End/j.epoch):
		out.Flags, out.Reason = recording.BlockVoid, recording.VoidEpochEnded
	case j.fails != 0 && b.Leg == j.fails:
		out.Flags, out.Reason = recording.BlockVoid, recording.VoidException
	}
	return out
}

func legAt(blocks []recording.PlannedBlock, step uint64) recording.Leg {
	for _, b := range blocks {
		if step >= b.First && step < b.End {
			return b.Leg
		}
	}
	return recording.LegLive
}

// check asserts what holds of every plan: blocks are appended ahead of every rank, adjacent in pairs, in whole cycles.
func (j job) check(t *testing.T, p *Planner, d Decision, planned int, step uint64) {
	t.Helper()
	for i := planned; i < len(d.Blocks); i++ {
		b := d.Blocks[i]
		if b.First < step+4 || b.End < b.First+minSteps {
			t.Fatalf("block %+v planned at step %d", b, step)
		}
		if i > 0 && b.First < d.Blocks[i-1].End {
			t.Fatalf("block %+v overlaps %+v", b, d.Blocks[i-1])
		}
		if i%2 == 1 && (b.First != d.Blocks[i-1].End || d.Blocks[i-1].Leg != recording.LegLive) {
			t.Fatalf("block %+v does not follow its live block %+v", b, d.Blocks[i-1])
		}
	}
	if d.Phase == Parking && !d.Now && planned != len(d.Blocks) {
		t.Fatalf("blocks were planned while parking")
	}
}

func steps(live, cached time.Duration) map[recording.Leg]time.Duration {
	return map[recording.Leg]time.Duration{recording.LegLive: live, recording.LegHostCached: cached}
}

func TestPlan(t *testing.T) {
	const (
		host   = recording.LegHostCached
		busy   = recording.LegHostCachedBusy
		device = recording.LegDeviceCached
	)
	for _, tt := range []struct {
		name   string
		budget time.Duration
		job    job
		good   map[recording.Leg]int // at least
		refuse string
	}{
		{"starved, the demo's budget", 22 * time.Second,
			job{step: steps(44*ms, 16*ms), wait: 29 * ms, start: 2 * time.Second, workers: 2, settle: 300 * ms}, map[recording.Leg]int{host: 4}, ""},
		{"starved, the usual budget", 3 * time.Minute,
			job{step: steps(44*ms, 16*ms), wait: 29 * ms, start: 10 * time.Second, workers: 2}, map[recording.Leg]int{host: 4, busy: 2, device: 2}, ""},
		{"not waiting at all", time.Minute,
			job{step: steps(100*ms, 100*ms), start: time.Second, workers: 4}, map[recording.Leg]int{host: 4}, ""},
		{"compute hides in the wait", time.Minute,
			job{step: steps(44*ms, 30*ms), wait: 43 * ms, start: time.Second, workers: 2}, map[recording.Leg]int{host: 4}, ""},
		{"very fast steps", 30 * time.Second,
			job{step: steps(2*ms, ms/2), wait: ms, start: time.Second, workers: 2}, map[recording.Leg]int{host: 4}, ""},
		{"slow steps", 3 * time.Minute,
			job{step: steps(1200*ms, 300*ms), wait: 900 * ms, start: 5 * time.Second, workers: 4, settle: 10 * time.Second}, map[recording.Leg]int{host: 3}, ""},
		{"no workers", 30 * time.Second,
			job{step: steps(30*ms, 10*ms), wait: 20 * ms, start: time.Second}, map[recording.Leg]int{host: 4}, ""},
		{"several ranks", time.Minute,
			job{step: steps(60*ms, 20*ms), wait: 40 * ms, start: time.Second, workers: 8, ranks: 4, settle: time.Second}, map[recording.Leg]int{host: 4}, ""},
		{"blocks fit between ends of epochs", time.Minute,
			job{step: steps(40*ms, 20*ms), wait: 20 * ms, start: time.Second, workers: 2, epoch: 150}, map[recording.Leg]int{host: 4}, ""},
		{"short epochs make coarse blocks", time.Minute,
			job{step: steps(40*ms, 4*ms), wait: 36 * ms, start: time.Second, workers: 2, epoch: 90}, map[recording.Leg]int{host: 2}, ""},
		{"a leg that raises is given up", 2 * time.Minute,
			job{step: steps(40*ms, 20*ms), wait: 20 * ms, start: time.Second, workers: 2, fails: device}, map[recording.Leg]int{host: 4, busy: 2}, ""},
		{"epochs too short", 30 * time.Second,
			job{step: steps(40*ms, 20*ms), wait: 20 * ms, start: time.Second, workers: 4, epoch: 20}, nil, "an epoch is too short"},
		{"steps too slow for the budget", 30 * time.Second,
			job{step: steps(3*time.Second, time.Second), wait: 2 * time.Second, start: time.Second, workers: 1}, nil, "has no room"},
		{"no steps", 5 * time.Second, job{step: steps(ms, ms), start: time.Hour}, nil, "no training step"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New(Defaults(tt.budget))
			out := tt.job.run(t, p)
			for leg, n := range tt.good {
				if out.good[leg] < n {
					t.Errorf("%d good blocks of %v, want at least %d (plan %v)", out.good[leg], leg, n, out.blocks)
				}
			}
			if out.ended > tt.budget+time.Second {
				t.Errorf("ended after %v, budget %v", out.ended, tt.budget)
			}
			if tt.refuse != "" && (out.last.Phase != Refused || !strings.Contains(out.last.Why, tt.refuse)) {
				t.Errorf("phase %d, %q, want a refusal that says %q", out.last.Phase, out.last.Why, tt.refuse)
			}
			for _, s := range p.Skipped() {
				if out.good[s.Leg] > 0 || s.Reason == "" {
					t.Errorf("leg %v is said to be skipped (%q) and has %d good blocks", s.Leg, s.Reason, out.good[s.Leg])
				}
			}
			t.Logf("ended after %v, good %v, skipped %v, coarse %v", out.ended, out.good, p.Skipped(), p.Coarse())
		})
	}
}

func TestMaxStepEndsTheRun(t *testing.T) {
	o := Defaults(time.Minute)
	o.MaxStep = 400
	out := job{step: steps(20*ms, 10*ms), wait: 10 * ms, start: time.Second, workers: 1}.run(t, New(o))
	if out.last.Phase != Parking || out.last.Park > 400+recording.PlanAhead || out.good[recording.LegHostCached] == 0 {
		t.Errorf("parked at %d (phase %d), good %v", out.last.Park, out.last.Phase, out.good)
	}
}

func TestSoloBuildsAreAskedOfTheFirstCachedBlocks(t *testing.T) {
	out := job{step: steps(20*ms, 10*ms), wait: 10 * ms, start: time.Second, workers: 1}.run(t, New(Defaults(time.Minute)))
	solo := 0
	for _, b := range out.blocks {
		if b.Flags&recording.PlanSolo != 0 {
			solo++
			if b.Leg != recording.LegHostCached {
				t.Errorf("solo builds in %+v", b)
			}
		}
	}
	if solo != soloBlocks {
		t.Errorf("%d blocks ask for solo builds, want %d", solo, soloBlocks)
	}
}

// An epoch of 100 steps that ends at 130; 4 steps of filling.
//
//	130    134           229 230
//	─┤fill │    room       │ ├─
func TestEpochRoom(t *testing.T) {
	e := epoch{known: true, end: 130, length: 100, filling: 4}
	for _, tt := range []struct {
		first, n, at uint64
		ok           bool
	}{
		{50, 79, 50, true},   // just before the end
		{50, 80, 134, true},  // no: after the next start
		{132, 10, 134, true}, // inside the filling
		{140, 95, 234, true}, // the epoch after the next
		{50, 95, 134, true},
		{50, 96, 50, false}, // no epoch is that long
	} {
		if at, ok := e.room(tt.first, tt.n); at != tt.at || ok != tt.ok {
			t.Errorf("room(%d, %d) = %d, %v, want %d, %v", tt.first, tt.n, at, ok, tt.at, tt.ok)
		}
	}
	if at, ok := (epoch{}).room(7, 1e9); at != 7 || !ok {
		t.Errorf("an unknown epoch gave %d, %v", at, ok)
	}
}

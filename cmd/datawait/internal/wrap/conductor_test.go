package wrap

import (
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// pages keeps what was written to the control page.
type pages []recording.Control

func (p *pages) Write(c recording.Control) error { *p = append(*p, c); return nil }

func (p pages) last() recording.Control {
	if len(p) == 0 {
		return recording.Control{}
	}
	return p[len(p)-1]
}

// process is a rank that has made steps.
func process(pid int, steps uint64, world int) spool.Process {
	p := spool.Process{PID: pid, Stream: recording.StreamID(pid), Training: 0}
	p.Step, p.Fetches, p.Totals.Fetches = steps, steps, steps
	p.Totals.Wait = steps * 30e6
	p.EpochLength, p.EpochBatch = recording.Unknown64, recording.Unknown64
	if world > 0 {
		p.Declaration.WorldSize = &world
	}
	return p
}

func testConductor(t *testing.T, budget time.Duration) (*conductor, *pages) {
	t.Helper()
	p := &pages{}
	return newConductor(plan.Defaults(budget), p, newTap(recording.NewMemory(recording.Manifest{}))), p
}

// play lets ranks make a step every 50 ms from one second on, and calls the conductor every 200 ms until it says that
// the run is over, or for so long. The ranks park where the page says.
func play(t *testing.T, c *conductor, p *pages, pids []int, world int, length time.Duration, stuck bool) (verdict, time.Duration) {
	t.Helper()
	steps := uint64(0)
	for at := 200 * time.Millisecond; at < length; at += 200 * time.Millisecond {
		page := p.last()
		parked := page.Mode == recording.ControlPark || page.Mode == recording.ControlTest && steps >= page.ParkAt
		if at > time.Second && !parked {
			steps += 4
		}
		var live []spool.Process
		for i, pid := range pids {
			r := process(pid, steps, world)
			if steps == 0 {
				r.Training = -1
			}
			if parked && !(stuck && i > 0) {
				r.Parked = recording.ParkedAtEnd
			}
			live = append(live, r)
		}
		v, err := c.step(uint64(at)+1, at, live, false)
		if err != nil {
			t.Fatal(err)
		}
		if v.over {
			return v, at
		}
	}
	return verdict{}, length
}

func TestConductorRunsATestToItsEnd(t *testing.T) {
	c, p := testConductor(t, 30*time.Second)
	v, at := play(t, c, p, []int{1, 2}, 2, time.Minute, false)
	if !v.over || v.why != "" || at > 31*time.Second {
		t.Errorf("ended with %+v after %v", v, at)
	}
	page := p.last()
	if page.Mode == recording.ControlObserve || len(page.Plan) < 8 || page.ParkAt == recording.Unknown64 || page.Cap == 0 {
		t.Errorf("last page %+v", page)
	}
	if first := (*p)[0]; first.Mode != recording.ControlTest || len(first.Plan) != 2 {
		t.Errorf("first page %+v", first)
	}
}

func TestARankThatDoesNotParkIsNotWaitedForForEver(t *testing.T) {
	c, p := testConductor(t, 30*time.Second)
	v, at := play(t, c, p, []int{1, 2}, 2, time.Minute, true)
	if !v.over || at < patience {
		t.Errorf("ended with %+v after %v", v, at)
	}
}

func TestRanksOnOtherNodesRuleATestOut(t *testing.T) {
	c, p := testConductor(t, 40*time.Second)
	v, _ := play(t, c, p, []int{1, 2}, 16, 60*time.Second, false)
	if c.decision.Phase != plan.Refused || !strings.Contains(c.decision.Why, "2 of the job's 16 ranks") {
		t.Errorf("phase %v, %q", c.decision.Phase, c.decision.Why)
	}
	if v.over || len(*p) != 0 {
		t.Errorf("%+v, pages were written: %+v", v, *p)
	}
}

// A rank that fetches nothing can be neither served nor parked, and nothing would guard what it saves.
func TestRanksThatFetchNothingRuleATestOut(t *testing.T) {
	for fed, want := range map[int]string{0: "no fetch of a loader is seen", 1: "has to serve every rank"} {
		c, p := testConductor(t, 40*time.Second)
		for at := time.Second; at < 20*time.Second; at += time.Second {
			live := []spool.Process{process(1, uint64(at/time.Millisecond), 2), process(2, uint64(at/time.Millisecond), 2)}
			for i := range live {
				live[i].StepUnit = recording.StepOptimizer
				if i >= fed {
					live[i].Training, live[i].Fetches, live[i].Totals = -1, 0, recording.Totals{}
				}
			}
			if v, err := c.step(uint64(at), at, live, false); err != nil || v.over {
				t.Fatalf("%d fed: %+v, %v", fed, v, err)
			}
		}
		if c.decision.Phase != plan.Refused || !strings.Contains(c.decision.Why, want) || len(*p) != 0 {
			t.Errorf("%d fed: phase %v, %q, %d pages", fed, c.decision.Phase, c.decision.Why, len(*p))
		}
	}
}

// Who comes after an agent that died cannot number blocks as the ranks do, which remember the ones they have done.
func TestATestThatAnotherAgentBeganIsNotBegunAgain(t *testing.T) {
	c, p := testConductor(t, time.Minute)
	r := process(1, 50, 0)
	r.Block = 3
	for at := time.Second; at < 10*time.Second; at += time.Second {
		if v, err := c.step(uint64(at), at, []spool.Process{r}, false); err != nil || v.over {
			t.Fatalf("%+v, %v", v, err)
		}
		r.Step += 20
	}
	if c.decision.Phase != plan.Refused || len(*p) != 0 {
		t.Errorf("phase %v, pages %+v", c.decision.Phase, *p)
	}
}

func TestASaveEndsTheRun(t *testing.T) {
	c, _ := testConductor(t, time.Minute)
	r := process(1, 50, 0)
	r.Parked = recording.ParkedBySave
	v, err := c.step(1, time.Second, []spool.Process{r}, false)
	if err != nil || !v.over || !strings.Contains(v.why, "about to save") {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestASaveOfOneRankEndsTheOthersWhenAllAreGuarded(t *testing.T) {
	for _, test := range []struct {
		name    string
		guarded []recording.StreamID
		parked  recording.ParkState
		held    bool
		over    bool
	}{
		{"a rank saves, the other waits for it in a collective", []recording.StreamID{1, 2}, recording.ParkedBySave, false, true},
		{"the other has not come to the first cached block and may still save", []recording.StreamID{1}, recording.ParkedBySave, false, false},
		{"a child of a rank saves", []recording.StreamID{1, 2}, recording.NotParked, true, true},
		{"a child saves and a rank is not guarded", []recording.StreamID{2}, recording.NotParked, true, false},
		{"nobody saves", []recording.StreamID{1, 2}, recording.NotParked, false, false},
	} {
		c, _ := testConductor(t, time.Minute)
		for range 3 {
			if _, err := c.tap.Declare(recording.Declaration{Producer: recording.ProducerMain}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range test.guarded {
			mark := recording.Mark{Ref: uint16(recording.MarkTestBegan)}.Encode()
			if err := c.tap.Records(id, []recording.Record{mark}); err != nil {
				t.Fatal(err)
			}
		}
		saver, other, child := process(1, 50, 2), process(2, 50, 2), process(3, 5, 2)
		saver.Parked = test.parked
		child.Declaration.PPID = 1 // it has a loader of its own, and is no rank
		v, err := c.step(1, time.Second, []spool.Process{saver, other, child}, test.held)
		if err != nil || v.over != test.over || v.over != (v.why != "") {
			t.Errorf("%s: %+v, %v", test.name, v, err)
		}
	}
}

func TestNothingUnguardedIsEnded(t *testing.T) {
	c, p := testConductor(t, 5*time.Second)
	for at := time.Second; at < time.Minute; at += time.Second {
		v, err := c.step(uint64(at), at, []spool.Process{process(1, 2, 0)}, false) // two steps, then a long validation
		if err != nil || v.over {
			t.Fatalf("after %v: %+v, %v", at, v, err)
		}
	}
	if p.last().Mode != recording.ControlPark {
		t.Errorf("the ranks are not asked to park: %+v", p.last())
	}
}

func TestCacheRoom(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		memory, limit uint64
		ranks         int
		want          uint64
	}{
		{recording.Unknown64, recording.Unknown64, 1, 256 << 20},
		{16 * gib, recording.Unknown64, 1, 2 * gib},
		{16 * gib, 8 * gib, 2, gib / 2},
		{900 * gib, recording.Unknown64, 8, gib / 2},
	} {
		tap := newTap(recording.NewMemory(recording.Manifest{}))
		tap.memory, tap.limit = tt.memory, tt.limit
		if got := tap.cacheRoom(tt.ranks); got != tt.want {
			t.Errorf("cacheRoom of %+v = %d", tt, got)
		}
	}
}

func TestEndedProcessesAreForgotten(t *testing.T) {
	tap := newTap(recording.NewMemory(recording.Manifest{}))
	for pid := range 300 {
		if _, err := tap.Declare(recording.Declaration{Producer: recording.ProducerWorker, PID: pid + 1, StartTicks: 7}); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	lives := func(p host.Known) bool { asked++; return p.PID > 290 }
	tap.forgetEnded(lives)
	tap.forgetEnded(lives)
	if len(tap.processes) != 10 || asked != 300 {
		t.Errorf("%d processes are left, %d looks", len(tap.processes), asked)
	}
}

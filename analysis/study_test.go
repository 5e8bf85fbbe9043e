package analysis

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/probe/recording"
)

// TestRanksStudiedSideBySideGiveWhatOneAfterTheOtherGives, to the last bit: sound jobs, damaged ones and nonsense.
func TestRanksStudiedSideBySideGiveWhatOneAfterTheOtherGives(t *testing.T) {
	said := func(what string, atOnce int, nodes ...recording.Reader) string {
		r, err := Run(nodes, Options{AtOnce: atOnce})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return string(text) + fmt.Sprint(r.Timeline)
	}
	same := func(what string, nodes ...recording.Reader) {
		alone := said(what, 1, nodes...)
		for _, atOnce := range []int{2, 8} {
			if said(what, atOnce, nodes...) != alone {
				t.Errorf("%s: %d at once give another result", what, atOnce)
			}
		}
	}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 9))
		job := simulate.Job{Ranks: 2 + r.IntN(6), Epochs: 1 + r.IntN(3), Steps: 20 + r.IntN(60), Workers: r.IntN(4), Prefetch: 2, Build: jittery(50 * ms),
			Start: 20 * ms, Handoff: ms / 5, Compute: 10 * ms, Depth: 1, Host: ms, SM: 0.8, Window: 100 * ms, Validation: r.IntN(3), NoEvents: r.IntN(4) == 0}
		m, _ := job.Play()
		same(fmt.Sprint("job ", seed), m)
		same(fmt.Sprint("two nodes ", seed), m, m)
		same(fmt.Sprint("damaged ", seed), damaged(seed), damaged(seed+1000))
		same(fmt.Sprint("hostile ", seed), hostile(seed), hostile(seed+1000))
	}
}

// failing is a recording on a disk that fails.
type failing struct {
	*recording.Memory
	err error
}

func (f failing) Stream(recording.StreamID, func([]recording.Record) error) (recording.Damage, error) {
	return recording.Damage{}, f.err
}

func TestADiskThatFailsIsAnError(t *testing.T) {
	m, _ := simulate.Job{Ranks: 3, Epochs: 1, Steps: 10, Workers: 1, Prefetch: 2, Build: constant(ms), Compute: ms, Depth: 1, Host: ms}.Play()
	if r, err := Run([]recording.Reader{failing{m, fmt.Errorf("input/output error")}}, Options{}); err == nil {
		t.Errorf("a result came of it: %+v", r.Job)
	}
	later := &rereading{Memory: m, seen: map[recording.StreamID]bool{}, err: fmt.Errorf("input/output error")}
	if r, err := Run([]recording.Reader{later}, Options{AtOnce: 3}); err == nil {
		t.Errorf("a result came of it: %+v", r.Job)
	}
}

// rereading fails when a stream is read for the second time: the survey goes well, and then the disk fails.
type rereading struct {
	*recording.Memory
	err  error
	lock sync.Mutex
	seen map[recording.StreamID]bool
}

func (f *rereading) Stream(id recording.StreamID, visit func([]recording.Record) error) (recording.Damage, error) {
	f.lock.Lock()
	again := f.seen[id]
	f.seen[id] = true
	f.lock.Unlock()
	if again {
		return recording.Damage{}, f.err
	}
	return f.Memory.Stream(id, visit)
}

// TestTheAgentsOwnCost: what its processes take, each once. A probe is part of its process, and a child that was started again
// is one child.
func TestTheAgentsOwnCost(t *testing.T) {
	x := newTape(t)
	const seconds, MiB = 100, 1 << 20
	stream := func() recording.StreamID {
		id, _ := x.Declare(recording.Declaration{Producer: recording.ProducerAgent, PID: 1})
		return id
	}
	source := func(id recording.StreamID, ref uint16, from, to float64, cores float32, rss uint64) {
		x.write(id, recording.Source{Flags: recording.SourceSuccess, Ref: ref, Begin: at(from * 1000), End: at(to * 1000), CPU: cores, RSS: rss}.Encode())
	}
	agent, child, again := stream(), stream(), stream()
	for s := 0.0; s < seconds; s += 10 {
		source(agent, 0, s, s+10, 0.02, 30*MiB)               // the process
		source(agent, 1, s, s+10, 0.015, recording.Unknown64) // a probe in it
	}
	source(child, 0, 0, 50, 0.03, 20*MiB)
	source(again, 0, 50, 100, 0.05, 40*MiB)
	c := x.run().Quality.OwnCost
	if cores, rss := c.AgentCores.Or(-1), c.AgentRSS.Or(-1); !near(cores, 0.02+(0.03+0.05)/2, 1e-6) || !near(rss, (30+(20+40)/2)*MiB, 1) {
		t.Errorf("%.4f cores, %.1f MiB", cores, rss/MiB)
	}
}

// TestMemoryDoesNotGrowWithTheRanks: what one rank took, the next one uses again. A step of a further rank leaves its wait, for
// quantiles, and nothing else; to hold its records takes two hundred bytes.
func TestMemoryDoesNotGrowWithTheRanks(t *testing.T) {
	allocated := func(ranks, steps int) float64 {
		m, _ := simulate.Job{Ranks: ranks, Epochs: 1, Steps: steps, Workers: 2, Prefetch: 2, Build: constant(20 * ms), Handoff: ms / 5, Compute: 5 * ms, Depth: 1,
			Host: ms, SM: 0.8, Window: 1000 * ms}.Play()
		d := densify(m)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Run([]recording.Reader{d}, Options{AtOnce: 1}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	const few, many = 8_000, 32_000
	further := func(steps int) float64 { return (allocated(5, steps) - allocated(2, steps)) / 3 }
	if each := (further(many) - further(few)) / (many - few); each > 30 {
		t.Errorf("%.0f bytes for a step of a further rank", each)
	}
}

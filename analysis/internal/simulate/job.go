// Package simulate plays training jobs whose every number is known and writes them as recordings, for tests: a loader that works
// like PyTorch's, a device that runs launches in order, the cached-data test as the hook runs it.
//
// Truth is in [Truth]: what a perfect analysis finds.
package simulate

import (
	"fmt"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Millisecond in ns.
const Millisecond = 1_000_000

// Job is a job to be played. Times are ns.
type Job struct {
	Ranks      int
	Epochs     int
	Steps      int // per epoch
	Workers    int
	Prefetch   int // batches per worker
	Build      func(rank, epoch, batch int) int64
	Turn       int64           // before a build, for which workers wait in turn: no build shows it
	Handoff    int64           // between a batch being sent and next() returning
	Start      int64           // making an iterator (starting workers)
	Compute    int64           // device time of a step
	Depth      int             // launches that may be queued on the device; 0 = the host waits for each
	Host       int64           // host time of a step outside next()
	SM         float32         // SM activity while computing
	IdleSM     float32         // SM activity while not, as of another stream
	Noise      float32         // of the counters: each window's activity is off by at most so much
	Window     int64           // of counters; 0 = no counters
	NoEvents   bool            // no device clock
	Lag        int64           // counters are stamped this much late
	Validation int             // no-grad fetches after each epoch
	Checkpoint int64           // after each epoch
	Plan       []recording.Leg // blocks of the cached-data test, after Warm steps
	Warm       int             // live steps before the plan
	BlockSteps int             // counted steps of a block
	Unsynced   bool            // blocks are not timed on the device
	Copy       int64           // host-to-device copy of a step, in front of its compute; none with the batch on the device
	Contention float64         // compute is this much longer while workers are busy
	Die        map[int]int     // rank → step after which it is gone
	Notes      func(*recording.Memory, recording.StreamID)
	NoNotes    bool
}

// Truth is what happened.
type Truth struct {
	Busy     int64   // device busy, over the whole recording, of rank 0
	Begin    int64   // of rank 0's process
	End      int64   // of the recording
	Waits    []int64 // of rank 0's training fetches, in order
	Idles    []int64 // exposed part of each
	StepEnds []int64
}

// origin is when the agent starts; processes follow.
const origin = 1_000_000_000

// Play writes the job as one node's recording.
func (j Job) Play() (*recording.Memory, Truth) {
	m := recording.NewMemory(recording.Manifest{Format: recording.Format, Version: "test", Host: "node0", Command: []string{"python", "train.py"},
		StartedMonotonic: origin, Hook: recording.HookSummary{Attached: true, Spools: max(1, j.Ranks)}})
	agent, _ := m.Declare(recording.Declaration{Producer: recording.ProducerAgent, Host: "node0", PID: 1})
	var truth Truth
	end := int64(0)
	for n := range max(1, j.Ranks) {
		p := newProcess(j, m, n)
		p.run()
		end = max(end, p.now, p.device.end)
		if n == 0 {
			truth = p.truth
			truth.Begin = origin
		}
		if j.Window > 0 {
			m.AddNote(agent, recording.GPUNote{GPU: uint16(n), UUID: uuid(n), Name: "Emulated", Source: "emulated", Emulated: true, Grade: "A"})
			p.windows = p.device.windows(uint16(n), j, max(end, p.now))
		}
		for _, w := range p.windows {
			m.Add(agent, w.Encode())
		}
	}
	m.AddNote(agent, recording.ClockNote{Monotonic: origin, Realtime: 1_700_000_000_000_000_000})
	m.AddNote(agent, recording.ClockNote{Monotonic: uint64(end), Realtime: 1_700_000_000_000_000_000 + uint64(end) - origin})
	man := m.Manifest()
	man.EndedMonotonic = unit.Some(uint64(end))
	man.EndedBy = unit.Some(recording.EndedByCommand)
	if len(j.Plan) > 0 {
		man.EndedBy = unit.Some(recording.EndedByDatawait)
	}
	m.SetManifest(man)
	if j.Notes != nil {
		j.Notes(m, agent)
	}
	truth.End = end
	return m, truth
}

func uuid(n int) string { return fmt.Sprintf("GPU-emulated-%d", n) }

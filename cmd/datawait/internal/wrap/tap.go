package wrap

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/datawait/datawait/probe/alloc"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
)

// tap is a sink on the way to the recording that remembers what conducting the run takes: finished blocks, the workers
// of each loader, the job's processes, and the newest counter window.
type tap struct {
	recording.Sink
	blocks    []recording.Block // since they were last taken
	loaders   map[loaderKey]recording.Iterator
	guarded   map[recording.StreamID]bool // training processes in which the cached-data test began, and the save-guard is armed
	processes []host.Known                // of the job, with a ring
	gpus      alloc.Seen
	forgetAt  int     // how many of them make it worth looking for ended ones
	sm        float64 // activity in the newest window, negative = not known
	memory    uint64  // bytes available, unknown = all bits set
	limit     uint64  // bytes the job may use, unknown or none = all bits set
	err       error   // the first error of the recording
}

type loaderKey struct {
	stream recording.StreamID
	loader uint16
}

func newTap(s recording.Sink) *tap {
	return &tap{Sink: s, loaders: map[loaderKey]recording.Iterator{}, guarded: map[recording.StreamID]bool{}, gpus: alloc.NewSeen(), sm: -1,
		memory: recording.Unknown64, limit: recording.Unknown64}
}

// Records looks at the rare kinds and passes everything on.
func (t *tap) Records(id recording.StreamID, records []recording.Record) error {
	for i := range records {
		switch r := &records[i]; r.Kind() {
		case recording.KindBlock:
			t.blocks = append(t.blocks, r.Block())
		case recording.KindMark:
			if recording.MarkCode(r.Ref()) == recording.MarkTestBegan {
				t.guarded[id] = true
			}
		case recording.KindIterator:
			t.loaders[loaderKey{id, r.Ref()}] = r.Iterator()
		case recording.KindGPU:
			t.sm = -1
			if sm := float64(r.GPU().SM); !math.IsNaN(sm) {
				t.sm = sm
			}
		case recording.KindGPUProcess:
			t.gpus.Process(id, r.GPUProcess())
		case recording.KindMachine:
			t.memory = r.Machine().MemoryAvailable
		case recording.KindLimits:
			t.limit = r.Limits().MemoryLimit
		}
	}
	return t.keep(t.Sink.Records(id, records))
}

// Declare passes a declaration on.
func (t *tap) Declare(d recording.Declaration) (recording.StreamID, error) {
	switch d.Producer {
	case recording.ProducerMain:
		t.processes = append(t.processes, host.Known{PID: d.PID, StartTicks: d.StartTicks, Role: recording.RoleMain})
	case recording.ProducerWorker:
		t.processes = append(t.processes, host.Known{PID: d.PID, StartTicks: d.StartTicks, Role: recording.RoleWorker})
	}
	id, err := t.Sink.Declare(d)
	return id, t.keep(err)
}

// Note passes a note on.
func (t *tap) Note(id recording.StreamID, note json.RawMessage) error {
	t.gpus.Note(id, note)
	return t.keep(t.Sink.Note(id, note))
}

// End passes the end of a stream on, and forgets it.
func (t *tap) End(id recording.StreamID) {
	maps.DeleteFunc(t.loaders, func(k loaderKey, _ recording.Iterator) bool { return k.stream == id })
	if sink, ok := t.Sink.(recording.Ender); ok {
		sink.End(id)
	}
}

func (t *tap) keep(err error) error {
	if t.err == nil {
		t.err = err
	}
	return err
}

// cacheRoom is how many bytes one of several ranks may cache for the test: an eighth of what the machine has available
// or the job may use, and never more than 4 GiB in all.
func (t *tap) cacheRoom(ranks int) uint64 {
	const most, fallback = 4 << 30, 256 << 20
	room := min(t.memory, t.limit)
	if room == recording.Unknown64 {
		room = 8 * fallback
	}
	return min(room/8, most) / uint64(max(ranks, 1))
}

// forgetEnded drops processes that have ended, once there are twice as many as were left the last time: a job may start
// new workers in every epoch.
func (t *tap) forgetEnded(lives func(host.Known) bool) {
	const few = 256
	if len(t.processes) < max(few, t.forgetAt) {
		return
	}
	t.processes = slices.DeleteFunc(t.processes, func(p host.Known) bool { return !lives(p) })
	t.forgetAt = 2 * len(t.processes)
}

// takeBlocks returns the blocks that were reported since the last call.
func (t *tap) takeBlocks() []recording.Block {
	blocks := t.blocks
	t.blocks = nil
	return blocks
}

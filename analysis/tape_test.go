package analysis

import (
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// tape is a tiny recording written by hand. Times are milliseconds after the start.
type tape struct {
	*recording.Memory
	t     *testing.T
	steps map[recording.StreamID]uint32
	seqs  map[recording.StreamID]uint32
}

func newTape(t *testing.T) *tape {
	return &tape{recording.NewMemory(recording.Manifest{}), t, map[recording.StreamID]uint32{}, map[recording.StreamID]uint32{}}
}

const start = 1_000_000_000

func at(millis float64) uint64 { return uint64(start + millis*ms) }

// rank declares a training process.
func (x *tape) rank(pid, number int) recording.StreamID {
	id, err := x.Declare(recording.Declaration{Producer: recording.ProducerMain, Host: "node0", PID: pid, Rank: &number})
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

func (x *tape) write(id recording.StreamID, r recording.Record) uint32 {
	x.Add(id, r)
	x.seqs[id]++
	return x.seqs[id]
}

// fetch writes a fetch of a loader.
func (x *tape) fetch(id recording.StreamID, loader uint16, flags uint8, batch uint32, enter, exit float64) uint32 {
	return x.write(id, recording.Fetch{Flags: flags, Ref: loader, Enter: at(enter), Exit: at(exit), Batch: batch, Step: x.steps[id], Thread: 1,
		CPU: recording.Unknown64, Ready: recording.Unknown32}.Encode())
}

// step writes the end of an optimizer step.
func (x *tape) step(id recording.StreamID, end float64) {
	x.steps[id]++
	x.write(id, recording.Step{Begin: recording.Unknown64, End: at(end), Step: x.steps[id], Thread: 1, CPU: recording.Unknown64}.Encode())
}

func (x *tape) run() *Result {
	x.t.Helper()
	r, err := Run([]recording.Reader{x}, Options{})
	if err != nil {
		x.t.Fatal(err)
	}
	if problem := impossible(r); problem != "" {
		x.t.Fatal(problem)
	}
	return r
}

// first flags the first batch of an iterator.
func first(batch int) uint8 {
	if batch == 0 {
		return recording.FetchFirst
	}
	return 0
}

// wants compares a share with what it should be.
func wants(t *testing.T, what string, e Est, want, tolerance float64) {
	t.Helper()
	v, ok := e.Get()
	if !ok {
		t.Errorf("%s is unknown: %s", what, e.Why())
	} else if !near(v.Value, want, tolerance) {
		t.Errorf("%s = %+v, want %v", what, v, want)
	}
}

func has(r *Result, id string) bool {
	for _, v := range r.Verdicts {
		if v.ID == id {
			return true
		}
	}
	return false
}

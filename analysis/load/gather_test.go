package load

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// TestGather: the windows of a node's GPUs are the same whether they are read in one go or GPU by GPU, which many of them are.
func TestGather(t *testing.T) {
	job := func() *Job {
		x, r := newTape(t, recording.Manifest{}), rand.New(rand.NewPCG(3, 3))
		for agent := range uint64(2) { // the second one after the first; each gives the GPUs numbers of its own
			id := x.declare(recording.Declaration{Producer: recording.ProducerAgent, PID: int(agent)})
			for ref := range uint16(3) {
				x.AddNote(id, recording.GPUNote{GPU: ref, UUID: "GPU-" + string(rune('a'+(uint64(ref)+agent)%3))})
			}
			x.AddNote(id, recording.GPUNote{GPU: 3, UUID: "GPU-a"}) // under a second number
			for tick := range uint64(200) {
				begin := 1 + 1e9*(200*agent+tick)
				end := begin + 1e9
				ref := uint16(r.IntN(5)) // the note of the last one was lost
				switch r.IntN(3) {
				case 0:
					x.Add(id, recording.GPU{Ref: ref, Begin: begin, End: end, SM: r.Float32(), Resident: nan, Tensor: r.Float32()}.Encode(),
						recording.GPUPipes{Ref: ref ^ uint16(r.IntN(2)), Begin: begin, End: end, FP32: r.Float32(), Engine: r.Float32(), Occupancy: r.Float32()}.Encode())
				case 1:
					x.Add(id, recording.GPU{Ref: ref, Begin: begin, End: end, SM: 1.5 * r.Float32(), Resident: r.Float32()}.Encode())
				case 2:
					x.Add(id, recording.GPUState{Ref: ref, Begin: begin, End: end, Resident: r.Float32()}.Encode())
				}
			}
		}
		j, err := Survey([]recording.Reader{x})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	one, each := job(), job()
	each.Nodes[0].room.used = mostGathered
	for i, g := range one.Nodes[0].GPUs {
		h := each.Nodes[0].GPUs[i]
		a, err := g.Load(&Room{})
		b, failed := h.Load(&Room{})
		if err != nil || failed != nil || !g.gathered || h.gathered {
			t.Fatal(err, failed, g.gathered, h.gathered)
		}
		if len(g.Windows) < 20 || !sameWindows(g.Windows, h.Windows) || !reflect.DeepEqual(a, b) || g.Further != h.Further {
			t.Errorf("GPU %d: %d windows in one go, %d by itself; %v, %v", i, len(g.Windows), len(h.Windows), g.Further, h.Further)
		}
		g.Unload(&Room{})
	}
	if left := one.Nodes[0].room.used; left != 0 {
		t.Errorf("%d windows still wait when all are unloaded", left)
	}
}

// sameWindows compares bit by bit: NaN is what it is.
func sameWindows(a, b []Window) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := reflect.ValueOf(a[i]), reflect.ValueOf(b[i])
		for f := range x.NumField() {
			if v, w := x.Field(f), y.Field(f); !v.Equal(w) && !(v.CanFloat() && v.Float() != v.Float() && w.Float() != w.Float()) {
				return false
			}
		}
	}
	return true
}

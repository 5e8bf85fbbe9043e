package analysis

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// reader is a job whose two workers read files: a batch opens eight, waits 2 ms for each and 10 ns for a byte.
type reader struct {
	files, epochs int
	size          func(batch int) float64 // bytes per file
	shared        bool                    // both workers read every file
}

func (j reader) play(t *testing.T) Reads {
	x := newTape(t)
	main := x.rank(7, 0)
	now := 0.0
	batch := uint32(0)
	for w := range 2 {
		id, _ := x.Declare(recording.Declaration{Producer: recording.ProducerWorker, Host: "node0", PID: 60 + w, Parent: 7})
		x.write(main, recording.Worker{T: at(0), PID: uint32(60 + w), Worker: uint32(w)}.Encode())
		now = 0
		for e := range j.epochs {
			for b := range j.files / 8 {
				if b%2 != w && !j.shared {
					continue
				}
				off := 8 * (2e6 + 10*j.size(b))
				begin, end := at(now), at(now+(1e6+off)/1e6)
				now += (1e6 + off) / 1e6
				x.write(id, recording.Batch{Ref: recording.Unknown16, Begin: begin, End: end, Sent: end, Batch: batch, Resumes: uint32(e), Worker: uint32(w)}.Encode())
				x.write(id, recording.Cost{Ref: recording.Unknown16, CPU: 1e6, ProcessCPU: 1e6, Files: 8}.Encode())
				x.write(id, recording.IO{Ref: recording.Unknown16, RChar: uint64(8 * j.size(b))}.Encode())
				for f := range 8 {
					name := uint32(b*8+f) * 2654435769
					x.write(id, recording.Read{Ref: recording.Unknown16, T: begin, Hash: name}.Encode())
				}
				batch++
			}
		}
	}
	for i := range uint32(now / 10) {
		x.fetch(main, 0, first(int(i)), i, 10*float64(i), 10*float64(i)+5)
		x.step(main, 10*float64(i)+10)
	}
	return x.run().Loaders[0].Reads
}

// TestWhatAFileCosts: what every file costs by itself is told from what its bytes cost where sizes differ, and unknown where they do not.
func TestWhatAFileCosts(t *testing.T) {
	r := reader{files: 800, epochs: 2, size: func(b int) float64 { return 1e5 * float64(1+b%5) }}.play(t)
	wants(t, "seconds per file", r.PerReading, 2e-3, 1e-5)
	if got := r.PerSecond.Or(0); math.Abs(got-1e8) > 1e6 {
		t.Errorf("%.3g bytes a second (%s), want 1e8", got, r.PerSecond.Why())
	}
	alike := reader{files: 800, epochs: 2, size: func(int) float64 { return 1e5 }}.play(t)
	if alike.PerReading.IsKnown() || !strings.Contains(alike.PerReading.Why(), "alike") {
		t.Errorf("files of one size: %v (%s)", alike.PerReading, alike.PerReading.Why())
	}
}

// TestWhatIsReadAgain: 800 files of 100 kB, read in the same order in every epoch: of a cache with room for all but one, LRU hits none.
func TestWhatIsReadAgain(t *testing.T) {
	r := reader{files: 800, epochs: 3, size: func(int) float64 { return 1e5 }}.play(t)
	wants(t, "names", r.Names, 800, 0)
	if set := r.SetBytes.Or(0); math.Abs(set-8e7) > 1 || r.PerEpoch.Or(0) != 1 || !near(r.Again.Or(0), 2.0/3, 1e-9) || !r.Complete.Or(false) {
		t.Errorf("set of %v bytes, %v a name and epoch, %v again, complete %v", set, r.PerEpoch, r.Again, r.Complete)
	}
	for _, c := range r.CacheHits {
		want := 0.0
		if c.SetRatio == 1 {
			want = 1
		}
		if c.Hits != want {
			t.Errorf("a cache of %v of the set hits %v, want %v", c.SetRatio, c.Hits, want)
		}
	}
	if len(r.CacheHits) != len(cacheSizes) {
		t.Errorf("%d cache sizes", len(r.CacheHits))
	}
	if shared := (reader{files: 800, epochs: 2, shared: true, size: func(int) float64 { return 1e5 }}).play(t); shared.PerEpoch.Or(0) != 2 {
		t.Errorf("read by both workers: %v a name and epoch", shared.PerEpoch)
	}
	if once := (reader{files: 800, epochs: 1, size: func(int) float64 { return 1e5 }}).play(t); len(once.CacheHits) > 0 || once.Complete.Or(true) {
		t.Errorf("read once: %+v", once)
	}
}

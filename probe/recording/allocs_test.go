//go:build !race

// The race detector allocates by itself, and makes pools forget: make test runs these without it.

package recording

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestFollowingARingAllocatesNothing: an agent looks at every ring several times a second for days.
func TestFollowingARingAllocatesNothing(t *testing.T) {
	path, w := newRing(t, 4096)
	r, err := OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := 0
	visit := func(records []Record) error { seen += len(records); return nil }
	look := func() {
		for range 20 {
			w.Write(Fetch{Enter: 1, Exit: 2}.Encode())
		}
		h, err := r.Header()
		if err == nil {
			err = r.Drain(h, visit)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write := testing.AllocsPerRun(100, func() {
		for range 20 {
			w.Write(Fetch{Enter: 1, Exit: 2}.Encode())
		}
	})
	look()
	if n := testing.AllocsPerRun(1000, look) - write; n > 0 {
		t.Errorf("%v allocations a look", n)
	}
	if seen < 20_000 {
		t.Errorf("only %d records were seen", seen)
	}
}

// TestReadingAStreamAllocatesNothingPerRecord: ten times the records, not one allocation more.
func TestReadingAStreamAllocatesNothingPerRecord(t *testing.T) {
	allocations := func(rounds int) float64 {
		_, w := create(t, Options{})
		id, _ := w.Declare(Declaration{Producer: ProducerMain})
		block := make([]Record, 512)
		for i := range block {
			block[i] = Fetch{Enter: 1, Exit: 2}.Encode()
			block[i].SetSeq(uint32(i + 1))
		}
		for range rounds {
			w.Records(id, block)
		}
		w.Close(Ending{})
		r, err := openNode(w.Dir())
		if err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		return testing.AllocsPerRun(5, func() {
			_, err := r.Stream(id, func(records []Record) error {
				for i := range records {
					f := records[i].Fetch()
					sum += f.Exit - f.Enter
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(40), allocations(400); many > few {
		t.Errorf("%v allocations for 20,480 records, %v for 204,800", few, many)
	}
}

// TestGatheringRecordsAllocatesNothing: the writer's buffers are used again.
func TestGatheringRecordsAllocatesNothing(t *testing.T) {
	_, w := create(t, Options{})
	defer w.Close(Ending{})
	var ids []StreamID
	for pid := range 40 {
		id, _ := w.Declare(Declaration{Producer: ProducerWorker, PID: pid})
		ids = append(ids, id)
	}
	block := make([]Record, 15)
	second := func() {
		for _, id := range ids {
			w.Records(id, block)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		second()
	}
	if n := testing.AllocsPerRun(200, second); n > 0 {
		t.Errorf("%v allocations a second", n)
	}
}

// TestScanningAllocatesTheSameForFourTimesTheRecords: 4 MiB and 16 MiB of them.
func TestScanningAllocatesTheSameForFourTimesTheRecords(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection may empty the pool
	allocated := func(r Reader) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Scan(r, func(StreamID, []Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := allocated(bigRecording(t, 1<<16, 256)), allocated(bigRecording(t, 1<<18, 256))
	if large > small+64<<10 || large > 2<<20 {
		t.Errorf("scanning allocates %d bytes for 4 MiB and %d for 16 MiB", small, large)
	}
}

//go:build !race

// The race detector allocates by itself: make test runs these without it.

package ledger

import (
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// TestABookAllocatesNothingPerStep: fetches, the device's clock, steps and windows, settled as time passes.
func TestABookAllocatesNothingPerStep(t *testing.T) {
	b := NewBook(0, 0)
	uuid := "GPU-1"
	agent, _ := b.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	b.Note(agent, recording.EncodeNote(recording.GPUNote{UUID: uuid}))
	main, _ := b.Declare(recording.Declaration{Producer: recording.ProducerMain, GPUUUID: &uuid})
	records := make([]recording.Record, 3)
	window := make([]recording.Record, 1)
	at, seq := uint64(1e9), uint32(0)
	second := func() {
		for range 5 {
			records[0] = recording.Fetch{Enter: at, Exit: at + 60e6, CPU: recording.Unknown64}.Encode()
			records[0].SetSeq(seq + 1)
			records[1] = recording.Step{Begin: recording.Unknown64, End: at + 200e6}.Encode()
			records[2] = recording.Exposed{T: at, Idle: 40e6, Fetch: seq - 23}.Encode() // of the fetch eight before
			at, seq = at+200e6, seq+3
			b.Records(main, records)
		}
		window[0] = recording.GPU{Begin: at - 1e9, End: at, Resident: 0.7, Copy: nan}.Encode()
		b.Records(agent, window)
		b.CloseUpTo(int64(at) - 5e9)
	}
	for range 500 {
		second()
	}
	if n := testing.AllocsPerRun(1000, second); n > 0 {
		t.Errorf("%v allocations a second", n)
	}
	if all := b.Balances()[0]; all.Settled < int64(at)-10e9 || all.Totals.NS[ExposedWait] == 0 || all.Totals.NS[Compute] == 0 {
		t.Errorf("nothing was booked: %+v", all)
	}
}

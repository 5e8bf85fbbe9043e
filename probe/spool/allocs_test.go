//go:build !race

// The race detector allocates by itself: make test runs these without it.

package spool

import (
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// TestPollingAllocatesNothingPerRing: an agent polls for days. What a look at the folder takes is the same for one ring and for forty.
func TestPollingAllocatesNothingPerRing(t *testing.T) {
	allocations := func(workers int) float64 {
		dir := t.TempDir()
		var rings []*recording.RingWriter
		for pid := 1; pid <= 1+workers; pid++ {
			producer := recording.ProducerWorker
			if pid == 1 {
				producer = recording.ProducerMain
			}
			w, err := recording.CreateRing(filepath.Join(dir, recording.RingName(pid, 1)), 1024, recording.Declaration{Producer: producer, PID: pid})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abandon()
			rings = append(rings, w)
		}
		d := Watch(dir, &nowhere{}, Options{Alive: func(int, uint64) bool { return true }})
		defer d.Close()
		now := uint64(1e12)
		write := func() {
			for _, w := range rings {
				w.Write(recording.Batch{}.Encode())
			}
		}
		poll := func() {
			write()
			now += 4e6 // so often that the folder is listed no more than a few times in all
			for _, r := range d.rings {
				r.due = 0
			}
			if err := d.Poll(now); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			poll()
		}
		return testing.AllocsPerRun(100, poll) - testing.AllocsPerRun(100, write)
	}
	if one, forty := allocations(0), allocations(40); forty > one || one > 4 {
		t.Errorf("%v allocations a poll of one ring, %v of forty", one, forty)
	}
}

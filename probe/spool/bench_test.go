package spool

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// nowhere is a sink that forgets.
type nowhere struct{ streams recording.StreamID }

func (n *nowhere) Declare(recording.Declaration) (recording.StreamID, error) {
	n.streams++
	return n.streams, nil
}
func (*nowhere) Records(recording.StreamID, []recording.Record) error { return nil }
func (*nowhere) Note(recording.StreamID, json.RawMessage) error       { return nil }

// BenchmarkPoll is one look at a rank with 32 workers, each with one new record: ten a second are what an agent takes.
func BenchmarkPoll(b *testing.B) {
	dir := b.TempDir()
	var rings []*recording.RingWriter
	for pid := 1; pid <= 33; pid++ {
		producer := recording.ProducerWorker
		if pid == 1 {
			producer = recording.ProducerMain
		}
		w, err := recording.CreateRing(filepath.Join(dir, recording.RingName(pid, 1)), 1024, recording.Declaration{Producer: producer, PID: pid})
		if err != nil {
			b.Fatal(err)
		}
		defer w.Abandon()
		rings = append(rings, w)
	}
	d := Watch(dir, &nowhere{}, Options{Alive: func(int, uint64) bool { return true }})
	defer d.Close()
	now := uint64(0)
	b.ReportAllocs()
	for range b.N {
		b.StopTimer()
		for _, w := range rings {
			w.Write(recording.Batch{}.Encode())
		}
		b.StartTimer()
		now += 1e8
		if err := d.Poll(now); err != nil {
			b.Fatal(err)
		}
	}
}

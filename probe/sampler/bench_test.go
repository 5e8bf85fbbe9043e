package sampler

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// bench is a sampler in a bubble of false time, with its recording.
type bench struct {
	*Sampler
	t      *testing.T
	memory *recording.Memory
	begin  time.Time
	cpu    uint64 // of the loop's thread, moved by the test
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, memory: recording.NewMemory(recording.Manifest{}), begin: time.Now()}
	id, err := b.memory.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	if err != nil {
		t.Fatal(err)
	}
	b.Sampler = New(Clock{Now: b.now, ThreadCPU: func() uint64 { return b.cpu }}, recording.NewAppender(b.memory, id))
	return b
}

func (b *bench) now() uint64 { return uint64(time.Since(b.begin)) + 1000 }

// runFor runs the loop for a while of false time.
func (b *bench) runFor(d time.Duration) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	b.Run(ctx)
}

// at is a probe that notes when it ran, and takes a while.
func (b *bench) at(name string, every, takes time.Duration, ran *[]time.Duration) {
	b.Add(Probe{Name: name, Every: every, Run: func(context.Context, uint64) error {
		*ran = append(*ran, time.Since(b.begin))
		time.Sleep(takes)
		return nil
	}})
}

// health returns the SOURCE records of a source.
func (b *bench) health(name string) (found []recording.Source) {
	b.t.Helper()
	ref := slices.IndexFunc(b.memory.Streams()[0].Notes.DeviceNames, func(n recording.DeviceNameNote) bool { return n.Name == name })
	if ref < 0 {
		b.t.Fatalf("no source is named %s", name)
	}
	want := b.memory.Streams()[0].Notes.DeviceNames[ref].Ref
	if err := b.memory.Scan(func(_ recording.StreamID, records []recording.Record) error {
		for i := range records {
			if v := records[i].Source(); records[i].Kind() == recording.KindSource && v.Ref == want {
				found = append(found, v)
			}
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return found
}

// whys returns the reasons a source was given, in order.
func (b *bench) whys(name string) (whys []string) {
	for _, n := range b.memory.Streams()[0].Notes.DeviceNames {
		if n.Name == name {
			whys = append(whys, n.Why)
		}
	}
	return whys
}

func millis(n ...int) (d []time.Duration) {
	for _, v := range n {
		d = append(d, time.Duration(v)*time.Millisecond)
	}
	return d
}

// BenchmarkTick is what the loop itself costs for each run of a probe: clocks, health and the choice of the next one.
func BenchmarkTick(b *testing.B) {
	memory := recording.NewMemory(recording.Manifest{})
	id, _ := memory.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	s := New(Clock{}, recording.NewAppender(memory, id))
	for range 12 {
		s.Add(Probe{Name: "p", Every: time.Millisecond, Run: func(context.Context, uint64) error { return nil }})
	}
	for b.Loop() {
		src := s.due()
		s.tick(b.Context(), src, max(src.next, s.clock.Now()))
	}
}

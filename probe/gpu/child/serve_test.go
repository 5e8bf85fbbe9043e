package child

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

const second = uint64(1e9)

// script is a source that plays one batch per sample.
type script struct {
	devices []gpu.Device
	broken  error // of Devices
	plays   []func() (gpu.Batch, error)
	until   []uint64
}

func (s *script) Name() string                                  { return "script" }
func (s *script) Devices(context.Context) ([]gpu.Device, error) { return s.devices, s.broken }
func (s *script) Close() error                                  { return nil }

func (s *script) Sample(_ context.Context, until uint64) (gpu.Batch, error) {
	s.until = append(s.until, until)
	play := s.plays[0]
	s.plays = s.plays[1:]
	return play()
}

// TestALongPauseIsComeTo: a tenth of what was seen may be lost, once that is more than 4 s.
func TestALongPauseIsComeTo(t *testing.T) {
	now := 100 * second
	ctx, cancel := context.WithCancel(t.Context())
	var pauses []uint64
	s := &script{}
	err := Serve(ctx, io.Discard, s, ServeOptions{
		Declaration: recording.Declaration{Producer: recording.ProducerAgent, PID: 5}, Poll: 10 * time.Second,
		Now:   func() uint64 { return now },
		Usage: func() Usage { return Usage{} },
		Wait: func(_ context.Context, until uint64) {
			pauses = append(pauses, until-now)
			now = until
			s.plays = append(s.plays, func() (gpu.Batch, error) { return gpu.Batch{}, nil })
			if now > 400*second {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pauses {
		if i > 0 && p < pauses[i-1] || p < 4*second || p > 10*second {
			t.Errorf("pause %d of %v", i, p)
		}
	}
	if pauses[9] != 4*second || pauses[len(pauses)-1] != 10*second {
		t.Errorf("pauses %v: they begin with 4 s for 40 s, and come to 10 s", pauses)
	}
}

// serve plays the script on an injected clock that a sample moves on by takes, and returns what the pipe carried.
func serve(t *testing.T, s *script, takes uint64) (*recording.Memory, recording.Stream) {
	t.Helper()
	now := 100 * second
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var pipe bytes.Buffer
	err := Serve(ctx, &pipe, s, ServeOptions{
		Declaration: recording.Declaration{Producer: recording.ProducerAgent, PID: 5},
		Now:         func() uint64 { return now },
		Usage:       func() Usage { now += takes; return Usage{CPU: now / 10, RSS: 1 << 20} },
		Wait: func(_ context.Context, until uint64) {
			now = max(now, until)
			if len(s.plays) <= 1 { // the agent ends; what was counted by then is fetched once more
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := piped(t, &pipe)
	return m, m.Streams()[0]
}

// piped reads what a child wrote.
func piped(t *testing.T, pipe io.Reader) *recording.Memory {
	t.Helper()
	m := recording.NewMemory(recording.Manifest{})
	frames, forward := recording.NewPipeReader(pipe), recording.NewPipeForward(m)
	for {
		f, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatal(err)
		}
		forward.Forward(f)
	}
}

func recordsOf(t *testing.T, m recording.Reader) (windows []recording.GPU, health []recording.Source) {
	t.Helper()
	_, err := recording.Scan(m, func(_ recording.StreamID, records []recording.Record) error {
		for i := range records {
			switch records[i].Kind() {
			case recording.KindGPU:
				windows = append(windows, records[i].GPU())
			case recording.KindSource:
				health = append(health, records[i].Source())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return windows, health
}

func window(ref uint16, sm float32) recording.GPU { return recording.GPU{Ref: ref, SM: sm, End: 1} }

func TestServeReportsDataAndHealthApart(t *testing.T) {
	a, b := gpu.Device{Identity: gpu.Whole("GPU-a"), Ref: 0}, gpu.Device{Identity: gpu.Whole("GPU-b"), Ref: 1}
	s := &script{devices: []gpu.Device{a}}
	s.plays = []func() (gpu.Batch, error){
		func() (gpu.Batch, error) {
			return gpu.Batch{Windows: []recording.GPU{window(0, 0.5), window(0, 0.6)}}, nil
		},
		func() (gpu.Batch, error) {
			return gpu.Batch{}, errors.Join(errors.New("lost connection"), errors.New("no driver"))
		},
		func() (gpu.Batch, error) {
			return gpu.Batch{}, errors.Join(errors.New("lost connection"), errors.New("no driver"))
		},
		func() (gpu.Batch, error) {
			s.devices = []gpu.Device{a, b}
			return gpu.Batch{Changed: true, Rejected: 3, Failures: []gpu.Failure{{Ref: 0, Why: "no data"}}}, nil
		},
		func() (gpu.Batch, error) { return gpu.Batch{Windows: []recording.GPU{window(1, 0.7)}}, nil },
	}
	m, stream := serve(t, s, 0)
	windows, health := recordsOf(t, m)
	if len(windows) != 3 || windows[2].Ref != 1 || len(health) != 5 {
		t.Fatalf("%d windows, %d health records", len(windows), len(health))
	}
	for i, want := range []struct {
		success         uint8
		samples, errors uint32
	}{{1, 2, 0}, {0, 0, 1}, {0, 0, 1}, {1, 0, 4}, {1, 1, 0}} {
		h := health[i]
		if h.Flags != want.success || h.Samples != want.samples || h.Errors != want.errors || h.End-h.Begin != second || h.Lateness != 0 || h.RSS != 1<<20 {
			t.Errorf("sample %d: %+v, want %+v", i, h, want)
		}
	}
	var sources, gpus []string
	for _, n := range stream.Notes.DeviceNames {
		sources = append(sources, n.Name+"|"+n.Why)
	}
	for _, n := range stream.Notes.GPUs {
		gpus = append(gpus, n.UUID+"|"+n.Why)
	}
	same(t, sources, "gpu/script|", "gpu/script|lost connection; no driver", "gpu/script|")
	same(t, gpus, "GPU-a|", "GPU-a|no data", "GPU-b|", "GPU-a|")
}

// A source gives each window once: what it gave while the agent ended is not fetched again.
func TestWhatASampleBringsWhileTheAgentEndsIsKept(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &script{devices: []gpu.Device{{Identity: gpu.Whole("GPU-a")}}, plays: []func() (gpu.Batch, error){
		func() (gpu.Batch, error) {
			cancel()
			return gpu.Batch{Windows: []recording.GPU{window(0, 0.5)}}, ctx.Err()
		},
		func() (gpu.Batch, error) { return gpu.Batch{Windows: []recording.GPU{window(0, 0.6)}}, nil },
	}}
	var pipe bytes.Buffer
	if err := Serve(ctx, &pipe, s, ServeOptions{Declaration: recording.Declaration{Producer: recording.ProducerAgent, PID: 5},
		Wait: func(context.Context, uint64) {}}); err != nil {
		t.Fatal(err)
	}
	m := piped(t, &pipe)
	windows, health := recordsOf(t, m)
	if len(windows) != 2 || len(health) != 1 || health[0].Flags != recording.SourceSuccess {
		t.Errorf("windows %+v, health %+v", windows, health)
	}
}

func TestServeTellsWhoHoldsADeviceThatHasAName(t *testing.T) {
	s := &script{devices: []gpu.Device{{Identity: gpu.Whole("GPU-a"), Ref: 0}, {Identity: gpu.Identity{Parent: "GPU-b", GI: 1, CI: -1}, Ref: 1}}}
	s.plays = []func() (gpu.Batch, error){func() (gpu.Batch, error) {
		pod := recording.AllocationNote{By: recording.AllocatedByExporter, Holders: []recording.Holder{{Pod: "p"}}}
		return gpu.Batch{Holders: []gpu.Holders{{Ref: 0, AllocationNote: pod}, {Ref: 1, AllocationNote: pod}}}, nil
	}}
	_, stream := serve(t, s, 0)
	if all := stream.Notes.Allocations; len(all) != 1 || all[0].UUID != "GPU-a" || all[0].Holders[0].Pod != "p" {
		t.Errorf("%+v", all)
	}
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestASlowSampleIsLateAndMadeUp(t *testing.T) {
	s := &script{}
	for range 4 { // and the last, when the agent ends
		s.plays = append(s.plays, func() (gpu.Batch, error) { return gpu.Batch{}, nil })
	}
	m, _ := serve(t, s, 1500*1e6) // each sample takes 1.5 s of a poll of 1 s
	_, health := recordsOf(t, m)
	for i, want := range []uint64{500, 1000, 1500} { // ms; the next schedule begins anew
		if got := health[i].Lateness; got != want*1e6 {
			t.Errorf("sample %d is %d ns late, want %d ms", i, got, want)
		}
	}
	for i := 1; i < len(s.until); i++ {
		if s.until[i] <= s.until[i-1] {
			t.Errorf("samples until %v", s.until)
		}
	}
}

func TestASourceThatSeesNothing(t *testing.T) {
	s := &script{broken: errors.New("no library")}
	s.plays = []func() (gpu.Batch, error){func() (gpu.Batch, error) { return gpu.Batch{}, nil }}
	m, stream := serve(t, s, 0)
	_, health := recordsOf(t, m)
	if len(health) != 1 || health[0].Flags != 0 || stream.Notes.DeviceNames[1].Why != "no library" {
		t.Errorf("health %+v, notes %+v", health, stream.Notes.DeviceNames)
	}
}

func TestServeEndsWhenNobodyReads(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if err := Serve(context.Background(), w, &script{}, ServeOptions{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestUntilEOF(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := UntilEOF(context.Background(), r)
	defer cancel()
	if ctx.Err() != nil {
		t.Error("ended at once")
	}
	w.Close()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("did not end with its input")
	}
}

func TestOwnUsage(t *testing.T) {
	own := newSelf()
	defer own.close()
	u := own.usage()
	if u.CPU == 0 || u.RSS < 1<<20 || u.RSS == recording.Unknown64 {
		t.Errorf("usage %+v", u)
	}
	if v := (Usage{CPU: 5}).coresSince(Usage{CPU: 9}, second); !math.IsNaN(float64(v)) {
		t.Errorf("CPU time that went back gives %v cores", v)
	}
	if v := (Usage{CPU: second}).coresSince(Usage{}, 2*second); v != 0.5 {
		t.Errorf("got %v cores, want 0.5", v)
	}
}

package sampler

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

func TestEachProbeKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var fast, slow []time.Duration
		b.at("fast", 100*time.Millisecond, 0, &fast)
		b.at("slow", 250*time.Millisecond, 0, &slow)
		b.runFor(520 * time.Millisecond)
		if want := millis(0, 100, 200, 300, 400, 500, 520); !slices.Equal(fast, want) {
			t.Errorf("fast ran at %v, want %v: each tick, and once more at the end", fast, want)
		}
		if want := millis(0, 250, 500, 520); !slices.Equal(slow, want) {
			t.Errorf("slow ran at %v, want %v", slow, want)
		}
	})
}

// A probe that has more to take than it comes to take runs more often as long as that lasts.
func TestAProbeHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ran []time.Duration
		began := time.Now()
		b.Add(Probe{Name: "p", Every: 80 * time.Millisecond, Hurries: func() bool { return len(ran) == 2 || len(ran) == 3 },
			Run: func(context.Context, uint64) error { ran = append(ran, time.Since(began)); return nil }})
		b.runFor(200 * time.Millisecond)
		if want := millis(0, 80, 90, 100, 180, 200); !slices.Equal(ran, want) {
			t.Errorf("ran at %v, want %v", ran, want)
		}
	})
}

// A probe that takes longer than its pace leaves ticks out; it does not catch up. The others are late, and say so.
func TestOverrunSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var long, other []time.Duration
		b.at("long", 100*time.Millisecond, 250*time.Millisecond, &long)
		b.at("other", 200*time.Millisecond, 0, &other)
		b.runFor(1000 * time.Millisecond)
		if want := millis(0, 300, 600, 900, 1150); !slices.Equal(long, want) {
			t.Errorf("long ran at %v, want %v", long, want)
		}
		if want := millis(0+250, 400+150, 600+250, 1150+250); !slices.Equal(other, want) {
			t.Errorf("other ran at %v, want %v", other, want)
		}
		h := b.health("other")
		if len(h) != 1 || h[0].Lateness != 400e6 || h[0].Samples != 4 || h[0].Flags != recording.SourceSuccess {
			t.Errorf("health %+v, want one window of 4 samples, at most 400 ms late: due at 1000, run at 1400", h)
		}
		if got := b.Health()[0]; got.Name != "long" || got.Skipped != 8 || got.Duration != 250*time.Millisecond || got.Runs != 5 {
			t.Errorf("on the board: %+v, want 8 ticks skipped", got)
		}
	})
}

// Whatever arrives by itself is written by the loop: the counter below has no lock, and the race detector watches.
func TestSubmitRunsOnTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		unlocked := 0
		b.Add(Probe{Name: "p", Every: 10 * time.Millisecond, Run: func(context.Context, uint64) error { unlocked++; return nil }})
		results := make(chan error)
		for range 4 {
			go func() {
				for range 50 {
					time.Sleep(7 * time.Millisecond)
					if err := b.Submit(t.Context(), func() error { unlocked++; return nil }); err != nil {
						results <- err
						return
					}
				}
				results <- b.Submit(t.Context(), func() error { panic("oops") })
			}()
		}
		go b.runFor(995 * time.Millisecond)
		for range 4 {
			if err := <-results; err == nil || !strings.Contains(err.Error(), "oops") {
				t.Errorf("result %v, want the panic", err)
			}
		}
		<-b.ended
		if unlocked != 4*50+101 {
			t.Errorf("%d calls", unlocked)
		}
		if err := b.Submit(t.Context(), func() error { return nil }); !errors.Is(err, ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A loop that is always behind still takes deliveries.
func TestDeliveriesAreNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ran []time.Duration
		b.at("too long", 10*time.Millisecond, 10*time.Millisecond, &ran)
		b.at("too long as well", 10*time.Millisecond, 10*time.Millisecond, &ran)
		go b.runFor(time.Second)
		time.Sleep(15 * time.Millisecond)
		if err := b.Submit(t.Context(), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(b.begin); waited > 50*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		<-b.ended
	})
}

func TestRemovedProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ran []time.Duration
		var remove func()
		b.Add(Probe{Name: "remover", Every: 250 * time.Millisecond, Run: func(_ context.Context, now uint64) error {
			if now > 200e6 && remove != nil {
				remove()
				remove = nil
			}
			return nil
		}})
		remove = b.Add(Probe{Name: "removed", Every: 100 * time.Millisecond, Run: func(context.Context, uint64) error {
			ran = append(ran, time.Since(b.begin))
			return nil
		}})
		b.runFor(time.Second)
		if want := millis(0, 100, 200); !slices.Equal(ran, want) {
			t.Errorf("ran at %v", ran)
		}
		if h := b.health("removed"); len(h) != 1 || h[0].Samples != 3 {
			t.Errorf("health %+v: its last window is written when it goes", h)
		}
	})
}

// brokenSink refuses everything.
// Sources come and go with jobs, for months; a recording has few numbers to tell them by, and remembers what each stands for.
func TestNumbersAreTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		idle := func(context.Context, uint64) error { return nil }
		b.Add(Probe{Name: "stays", Every: time.Second, Run: idle})
		var removes []func()
		b.Add(Probe{Name: "jobs", Every: 100 * time.Millisecond, Run: func(context.Context, uint64) error {
			if len(removes) == 2 {
				removes[0]()
				removes = removes[1:]
			}
			removes = append(removes, b.Add(Probe{Name: "limits", Every: 50 * time.Millisecond, Run: idle}))
			return nil
		}})
		b.runFor(10 * time.Second)
		names := map[uint16]string{}
		for _, n := range b.memory.Streams()[0].Notes.DeviceNames {
			if was, known := names[n.Ref]; known && was != n.Name {
				t.Errorf("%d stands for %s and for %s", n.Ref, was, n.Name)
			}
			names[n.Ref] = n.Name
		}
		if len(names) != 4 {
			t.Errorf("a hundred sources, two at a time, beside two others, were told of by %d numbers: %v", len(names), names)
		}
	})
}

type brokenSink struct{}

func (brokenSink) Declare(recording.Declaration) (recording.StreamID, error) { return 1, nil }
func (brokenSink) Records(recording.StreamID, []recording.Record) error {
	return errors.New("no space left")
}
func (brokenSink) Note(recording.StreamID, json.RawMessage) error { return errors.New("no space left") }

func TestBrokenSinkEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := New(Clock{Now: func() uint64 { return uint64(time.Since(begin)) }, ThreadCPU: func() uint64 { return 0 }},
			recording.NewAppender(brokenSink{}, 1))
		ran := 0
		s.Add(Probe{Name: "p", Every: time.Second, Run: func(context.Context, uint64) error { ran++; return nil }})
		ctx, cancel := context.WithTimeout(t.Context(), 29500*time.Millisecond)
		defer cancel()
		s.Run(ctx)
		if ran != 31 {
			t.Errorf("ran %d times", ran)
		}
		if h := s.Health(); h[1].Name != "sampler" || h[1].Success || !strings.Contains(h[1].Why, "no space left") {
			t.Errorf("on the board: %+v", h)
		}
	})
}

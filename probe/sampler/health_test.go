package sampler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

func TestFailureAndPanicAreHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var well []time.Duration
		n := 0
		b.Add(Probe{Name: "panics", Every: time.Second, Run: func(context.Context, uint64) error {
			panic("a bug")
		}})
		b.Add(Probe{Name: "fails twice", Every: time.Second, Run: func(context.Context, uint64) error {
			if n++; n <= 2 {
				return errors.New("the disk is on fire")
			}
			return nil
		}})
		b.at("well", time.Second, 0, &well)
		b.runFor(9500 * time.Millisecond)
		if len(well) != 11 {
			t.Errorf("the probe after them ran %d times", len(well))
		}
		panics, fails := b.health("panics"), b.health("fails twice")
		if len(panics) != 2 || panics[0].Flags != 0 || panics[0].Errors != 6 || panics[0].Samples != 0 {
			t.Errorf("panics: %+v", panics)
		}
		if fails[0].Flags != 0 || fails[0].Errors != 2 || fails[0].Samples != 4 || fails[1].Flags != recording.SourceSuccess || fails[1].Samples != 5 {
			t.Errorf("fails twice: %+v", fails)
		}
		if why := b.whys("panics"); len(why) != 1 || !strings.Contains(why[0], "a bug") || !strings.Contains(why[0], "health_test.go") {
			t.Errorf("panics because %q: want the panic and its place, once", why)
		}
		if why := b.whys("fails twice"); !slices.Equal(why, []string{""}) {
			t.Errorf("fails twice because %q: it works when health is written", why)
		}
	})
}

func TestReasonIsToldWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Add(Probe{Name: "moody", Every: time.Second, Run: func(_ context.Context, now uint64) error {
			if now < 12e9 {
				return errors.New("not yet")
			}
			return nil
		}})
		b.runFor(21 * time.Second)
		if why := b.whys("moody"); !slices.Equal(why, []string{"not yet", ""}) {
			t.Errorf("reasons %q", why)
		}
	})
}

func TestUnsupportedIsNoFailureAndRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ran []time.Duration
		b.Add(Probe{Name: "psi", Every: time.Second, Run: func(context.Context, uint64) error {
			ran = append(ran, time.Since(b.begin))
			return fmt.Errorf("%w: boot with psi=1", errors.ErrUnsupported)
		}})
		b.runFor(130 * time.Second)
		if want := millis(0, 61000, 122000); !slices.Equal(ran, want) {
			t.Errorf("tried at %v, want %v", ran, want)
		}
		for _, h := range b.health("psi") {
			if h.Flags != 0 || h.Errors != 0 || h.Samples != 0 {
				t.Errorf("%+v", h)
			}
		}
		if why := b.whys("psi"); len(why) != 1 || !strings.Contains(why[0], "psi=1") {
			t.Errorf("reasons %q", why)
		}
	})
}

func TestWatchedProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		usage := func() (cpu, rss uint64, err error) { return b.now() / 100, 7 << 20, nil } // 1 % of a core
		b.Watch("agent", false, usage)
		restarted := uint64(0)
		child := b.Watch("gpu child", true, func() (cpu, rss uint64, err error) {
			if b.now() > 12e9 {
				return 0, 0, errors.New("it is dead")
			}
			return b.now()/50 - restarted, 9 << 20, nil
		})
		go b.runFor(21 * time.Second)
		time.Sleep(2 * time.Second)
		_ = b.Submit(t.Context(), func() error { child.Delivered(20); return nil })
		<-b.ended
		agent, gpu := b.health("agent"), b.health("gpu child")
		if a := agent[1]; a.Flags != recording.SourceSuccess || a.CPU < 0.0099 || a.CPU > 0.0101 || a.RSS != 7<<20 {
			t.Errorf("agent %+v", a)
		}
		if g := gpu[0]; g.Flags != recording.SourceSuccess || g.Samples != 20 || g.CPU == g.CPU || g.RSS != 9<<20 {
			t.Errorf("child %+v: the first window has nothing to compare its CPU with", g)
		}
		if g := gpu[1]; g.Flags != 0 || g.Errors != 0 || g.CPU < 0.0199 || g.CPU > 0.0201 {
			t.Errorf("child %+v: it lives and delivers nothing", g)
		}
		if g := gpu[2]; g.Flags != 0 || g.Errors != 1 || g.RSS != recording.Unknown64 || g.CPU == g.CPU {
			t.Errorf("child %+v, want its death", g)
		}
		if why := b.whys("gpu child"); len(why) != 2 || !strings.Contains(why[1], "it is dead") {
			t.Errorf("reasons %q", why)
		}
	})
}

func TestOwnCPUOfAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Add(Probe{Name: "works", Every: 100 * time.Millisecond, Run: func(context.Context, uint64) error { b.cpu += 1e6; return nil }})
		b.runFor(6 * time.Second)
		if h := b.health("works"); h[0].CPU < 0.0099 || h[0].CPU > 0.0103 || h[0].RSS != recording.Unknown64 {
			t.Errorf("%+v, want 1 ms each 100 ms: 0.01 cores", h[0])
		}
	})
}

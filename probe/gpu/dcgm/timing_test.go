//go:build linux && cgo

package dcgm

import (
	"math"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// timing is when samples are from, how they come, and in what units.
var timing = []behaviour{
	{"units", "every counter arrives in its unit", standin.A100(0, "sm=0.5 tensor=0.25 resident=0.9 dram=0.3 occupancy=0.2 engine=0.8 fp32=0.1 pcie-in=5e9 pcie-out=1e9 nvlink=3e10 "+
		"idle=100 busy-power=300 clock=1200 used=2048") + standin.Groups, plan{}, inUnits},
	{"engine-clock", "an engine whose clock is an hour ahead tells of now", one + "clock by=3600s\n", plan{For: 2 * time.Second},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 6); placed(t, o) }},
	{"engine-clock", "an engine whose clock is an hour behind tells of now", one + "clock by=-3600s\n", plan{For: 2 * time.Second},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 6); placed(t, o) }},
	{"engine-clock", "a clock that is set forward costs no window and moves none", one + "clock by=1234567ms at=2100ms\n", plan{For: 5 * time.Second, Every: 800 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 27); placed(t, o); whole(t, o) }},
	{"engine-clock", "a clock that is set back costs no window and moves none", one + "clock by=-1234567ms at=2100ms\n", plan{For: 5 * time.Second, Every: 800 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 27); placed(t, o); whole(t, o) }},
	{"late-samples", "samples that come after their time all count", one + "late by=700ms\n", plan{For: 4 * time.Second},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 20); placed(t, o); whole(t, o) }},
	{"kept-samples", "a poll that comes seconds later has everything since the last", one, plan{For: 5 * time.Second, Every: 2400 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 30)
			whole(t, o)
			for _, w := range o.Windows(0)[1:] {
				if _, known := w.Values["power"]; !known {
					t.Errorf("no power in %+v", w)
				}
			}
		}},
	{"lost-samples", "what was never stored is a gap and no longer window", one + "lose share=0.3\n", plan{For: 4 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 12)
			gaps := 0
			for i, w := range o.Windows(0) {
				if i > 4 && w.End-w.Begin > 150e6 {
					t.Errorf("window %d of %v", i, time.Duration(w.End-w.Begin))
				}
				if i > 0 && w.Begin > o.Windows(0)[i-1].End+50e6 {
					gaps++
				}
			}
			if gaps == 0 {
				t.Error("nothing was lost: this shows nothing")
			}
		}},
	{"shared-interval", "windows are as long as the shortest wish of all clients, and then as ours", one + "watcher interval=100ms at=0s for=2500ms\n",
		plan{For: 10 * time.Second, Every: time.Second, Options: Options{Interval: time.Second}}, shared},
	{"update-waits", "that no sample has come so soon is no failure for long", one, plan{For: 3 * time.Second, Options: Options{Interval: time.Second}},
		func(t *testing.T, o standin.Outcome) { quiet(t, o, 6) }},
}

func inUnits(t *testing.T, o standin.Outcome) {
	want := map[string]float64{"sm": 0.5, "tensor": 0.25, "resident": 0.9, "dram": 0.3, "power": 200, "clock": 1200e6, "memory": 2048 << 20}
	pipes := map[string]float64{"occupancy": 0.2, "engine": 0.8, "fp32": 0.1, "pcie-in": 5e9, "pcie-out": 1e9, "nvlink-in": 3e10, "nvlink-out": 3e10}
	close := func(values, want map[string]float64) {
		t.Helper()
		for name, v := range want {
			if got, known := values[name]; !known || math.Abs(got-v) > 1e-6*v {
				t.Errorf("%s is %v, want %v", name, got, v)
			}
		}
	}
	n := 0
	for _, p := range o.Polls {
		for i := range p.Pipes {
			n++
			close(p.Windows[i].Values, want)
			close(p.Pipes[i].Values, pipes)
		}
	}
	if n < 5 {
		t.Errorf("%d windows", n)
	}
}

// placed fails unless every window lies shortly before the poll that brought it.
func placed(t *testing.T, o standin.Outcome) {
	t.Helper()
	before := o.Polls[0].At - 1e9
	for _, p := range o.Polls {
		for _, w := range p.Windows {
			if w.End > p.At+100e6 || w.End < before-1500e6 {
				t.Errorf("polled at %d: %+v", p.At, w)
			}
		}
		before = p.At
	}
}

// whole fails unless the windows leave nothing out.
func whole(t *testing.T, o standin.Outcome) {
	t.Helper()
	windows := o.Windows(0)
	for i := 1; i < len(windows); i++ {
		if gap := int64(windows[i].Begin) - int64(windows[i-1].End); gap > 20e6 {
			t.Errorf("%v are missing before %+v", time.Duration(gap), windows[i])
		}
	}
}

// shared expects windows of 100 ms while another client wishes for them, and of a second before long after.
func shared(t *testing.T, o standin.Outcome) {
	working(t, o, 0, 15)
	windows := o.Windows(0)
	short, long := 0, 0
	for _, w := range windows {
		if length := w.End - w.Begin; length < 200e6 {
			short++
		} else if length > 900e6 {
			long++
		}
	}
	if last := windows[len(windows)-1]; short < 10 || long < 1 || last.End-last.Begin < 900e6 {
		t.Errorf("%d short and %d long windows, the last %+v", short, long, last)
	}
}

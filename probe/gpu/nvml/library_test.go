//go:build linux && cgo

package nvml

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// plan is what the process under test does.
type plan struct {
	GPM     bool // else states
	Options Options
	For     time.Duration // sampling
	Every   time.Duration
}

// TestMain carries out a plan when this test binary is run again: the stand-in libraries play one scenario a process.
func TestMain(m *testing.M) {
	var p plan
	if standin.Playing(&p) {
		json.NewEncoder(os.Stdout).Encode(standin.Sampled(p.open, p.For, p.Every))
		return
	}
	code := m.Run()
	standin.Remove()
	os.Exit(code)
}

func (p plan) open(ctx context.Context) (gpu.Source, error) {
	if p.GPM {
		return OpenGPM(ctx, p.Options)
	}
	return OpenStates(ctx)
}

func sampled(t *testing.T, scenario string, p plan) (o standin.Outcome) {
	t.Helper()
	standin.Play(t, scenario, p, &o)
	return o
}

func TestTheStateOfABusyGPU(t *testing.T) {
	o := sampled(t, standin.A100(0, "sm=0.5 resident=1 reasons=4 clock=1200 max-clock=1410 generation=3")+"process gpu=0 pid=77 memory=100\nxid gpu=0 code=31 at=300ms\n",
		plan{For: 1200 * time.Millisecond, Every: 400 * time.Millisecond})
	if len(o.Polls) < 3 || len(o.Devices) != 1 || o.Devices[0].UUID != standin.UUID(0) || o.Devices[0].Missing == "" {
		t.Fatalf("%+v", o)
	}
	for _, p := range o.Polls {
		v := p.States[0].Values
		if math.Abs(v["power"]-180) > 1 || v["reasons"] != 4 || v["clock"] != 1200e6 || v["max-clock"] != 1410e6 || v["generation"] != 3 || v["width"] != 16 || v["resident"] != 1 {
			t.Errorf("state %+v", p.States[0])
		}
		if len(p.Windows) != 0 {
			t.Errorf("windows %+v", p.Windows)
		}
	}
	if p := o.Polls[0].Processes; len(p) != 1 || p[0].PID != 77 || len(o.Polls[1].Processes) != 0 {
		t.Errorf("processes %+v, then %+v", p, o.Polls[1].Processes)
	}
	if e := o.Events(); len(e) != 1 || e[0].Value != 31 {
		t.Errorf("events %+v", e)
	}
}

func TestGPMCountsOnHopper(t *testing.T) {
	o := sampled(t, standin.H100(0, "sm=0.5 tensor=0.25 resident=1")+standin.A100(1, "sm=1"), plan{GPM: true, For: 1500 * time.Millisecond, Every: 500 * time.Millisecond})
	windows := o.Windows(0)
	if len(windows) < 6 || o.Devices[0].Missing != "" || o.Devices[1].Missing == "" || len(o.Windows(1)) != 0 {
		t.Fatalf("%d windows of %+v", len(windows), o.Devices)
	}
	for i, w := range windows {
		if w.Values["sm"] != 0.5 || w.Values["tensor"] != 0.25 || w.End-w.Begin < 100e6 || w.Flags != 0 {
			t.Errorf("window %+v", w)
		}
		if i > 0 && w.Begin != windows[i-1].End {
			t.Errorf("a gap between %+v and %+v", windows[i-1], w)
		}
	}
}

// A look that finds nobody is told: nothing at all would be nobody looking.
func TestALookThatFindsNoProcessIsTold(t *testing.T) {
	o := sampled(t, standin.A100(0, "sm=0 resident=0"), plan{For: 900 * time.Millisecond, Every: 400 * time.Millisecond})
	if p := o.Polls[0].Processes; len(p) != 1 || p[0].PID != 0 {
		t.Errorf("the first look found %+v", p)
	}
	if p := o.Polls[1].Processes; len(p) != 0 {
		t.Errorf("nobody looked again so soon, and yet %+v", p)
	}
}

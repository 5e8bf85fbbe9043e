//go:build linux && cgo

package gpusource

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// plan is what a process does in which the stand-in libraries play a scenario.
type plan struct {
	Choice Choice
	For    time.Duration
}

// TestMain carries out a plan when this test binary is run again.
func TestMain(m *testing.M) {
	var p plan
	if standin.Playing(&p) {
		json.NewEncoder(os.Stdout).Encode(p.carryOut())
		return
	}
	code := m.Run()
	standin.Remove()
	os.Exit(code)
}

func (p plan) carryOut() standin.Outcome {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // that somebody listens is all the stand-in engine needs
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	p.Choice.Address = listener.Addr().String()
	signs = []string{"/proc/self/status"} // of a driver
	open := func(ctx context.Context) (gpu.Source, error) {
		c, _, err := p.Choice.Open(ctx, Options{Dir: os.TempDir(), Interval: 100 * time.Millisecond})
		return source(c, err)
	}
	return standin.Sampled(open, p.For, 400*time.Millisecond)
}

// TestWhatDCGMCountsNVMLLeavesAlone: both at once read wrongly. The stand-in ends the process if NVML's counters of the GPU are touched.
func TestWhatDCGMCountsNVMLLeavesAlone(t *testing.T) {
	t.Parallel()
	scenario := standin.H100(0, "sm=0.5 resident=1 gpm-forbidden=1") + standin.H100(1, "sm=0.25 resident=1") + standin.A100(2, "sm=0.75 resident=1") + standin.Groups +
		"no-profiling when=watch code=-33 gpu=1\nno-profiling when=watch code=-37 gpu=2\n"
	var o standin.Outcome
	standin.Play(t, scenario, plan{Choice{Kind: Auto}, 2500 * time.Millisecond}, &o)
	if len(o.Devices) != 3 {
		t.Fatalf("%+v", o)
	}
	for i, want := range []struct {
		source, why, missing string
		sm                   float64
	}{
		{"dcgm", "", "", 0.5},
		{"nvml-gpm", "profiling module is not installed", "", 0.25},
		{"dcgm", "", "somebody else owns the counters", 0}, // and NVML has none of it
	} {
		d := o.Devices[i]
		if d.Source != want.source || !strings.Contains(d.Why, want.why) || !strings.Contains(d.Missing, want.missing) || (want.missing == "") != (d.Missing == "") {
			t.Errorf("GPU %d: %+v", i, d)
		}
		windows := o.Windows(uint16(i))
		if (want.sm > 0) != (len(windows) > 5) {
			t.Errorf("GPU %d has %d windows", i, len(windows))
		}
		for _, w := range windows {
			if w.Values["sm"] != want.sm {
				t.Errorf("GPU %d: %+v", i, w)
			}
		}
		if len(o.States(uint16(i))) < 2 {
			t.Errorf("GPU %d has %d states", i, len(o.States(uint16(i))))
		}
	}
}

// TestASliceIsOneDeviceToBothLibraries: DCGM knows it by numbers, NVML by a UUID of its own.
func TestASliceIsOneDeviceToBothLibraries(t *testing.T) {
	t.Parallel()
	var o standin.Outcome
	standin.Play(t, standin.A100(0, "mig=1")+standin.Groups+"gi id=10 gpu=0 gi=1\nci id=20 in=10 ci=0 uuid=MIG-a sm=0.5 resident=1 memory=20000\n",
		plan{Choice{Kind: DCGM}, 1500 * time.Millisecond}, &o)
	if len(o.Devices) != 1 || o.Devices[0].UUID != "MIG-a" || o.Devices[0].Parent != standin.UUID(0) || o.Devices[0].Source != "dcgm" {
		t.Fatalf("%+v", o.Devices)
	}
	if len(o.Windows(0)) < 5 || len(o.States(0)) < 2 || o.States(0)[0].Values["memory"] != 20000<<20 {
		t.Errorf("%d windows, states %+v", len(o.Windows(0)), o.States(0))
	}
}

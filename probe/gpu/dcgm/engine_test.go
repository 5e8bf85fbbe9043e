//go:build linux && cgo

package dcgm

import (
	"context"
	"encoding/json"
	"flag"
	"net"
	"os"
	"testing"
	"time"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/standin"
	"github.com/datawait/datawait/probe/recording"
)

// plan is what the process under test does.
type plan struct {
	Options Options
	For     time.Duration // sampling
	Every   time.Duration
	Deaf    bool // nobody listens where the engine should
	Unix    bool // it listens at a socket, of the form unix:///…

	LiveProfiling bool // read SM activity live, as must never be done
}

// TestMain carries out a plan when this test binary is run again: the stand-in libraries play one scenario a process.
func TestMain(m *testing.M) {
	var p plan
	if standin.Playing(&p) {
		json.NewEncoder(os.Stdout).Encode(p.carryOut())
		return
	}
	flag.Parse()
	flag.Set("test.parallel", "24") // the scenarios mostly sleep
	code := m.Run()
	standin.Remove()
	os.Exit(code)
}

func (p plan) carryOut() standin.Outcome {
	if p.LiveProfiling {
		bind.Init(bind.Embedded)
		bind.EntitiesGetLatestValues([]bind.GroupEntityPair{{EntityGroupId: bind.FE_GPU}}, []bind.Short{fieldSM}, liveData)
		return standin.Outcome{}
	}
	if p.Unix {
		dir, err := os.MkdirTemp("", "datawait-engine-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		defer listen("unix", dir+"/socket").Close()
		p.Options.Address = "unix://" + dir + "/socket"
	} else if !p.Deaf {
		listener := listen("tcp", "127.0.0.1:0")
		defer listener.Close()
		p.Options.Address = listener.Addr().String()
	}
	return standin.Sampled(func(ctx context.Context) (gpu.Source, error) { return Open(ctx, p.Options) }, p.For, p.Every)
}

func listen(network, address string) net.Listener {
	listener, err := net.Listen(network, address)
	if err != nil {
		panic(err)
	}
	return listener
}

func sampled(t *testing.T, scenario string, p plan) (o standin.Outcome) {
	t.Helper()
	standin.Play(t, scenario, p, &o)
	return o
}

func TestSMActivityOfABusyGPU(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5 tensor=0.25 resident=1")+standin.Groups, plan{For: 2 * time.Second, Every: 500 * time.Millisecond})
	windows := o.Windows(0)
	if len(windows) < 12 || len(o.Devices) != 1 || o.Devices[0].UUID != standin.UUID(0) || o.Devices[0].Missing != "" {
		t.Fatalf("%d windows of %+v", len(windows), o.Devices)
	}
	for i, w := range windows {
		if w.Values["sm"] != 0.5 || w.Values["tensor"] != 0.25 || w.Values["resident"] != 1 || w.Flags != 0 {
			t.Errorf("window %+v", w)
		}
		if i > 0 && w.Begin != windows[i-1].End {
			t.Errorf("a gap between %+v and %+v", windows[i-1], w)
		}
		if _, known := w.Values["copy"]; known {
			t.Error("DCGM tells nothing of copy engines, and yet it is known")
		}
	}
}

func TestAGPUKeepsItsNumberOverALostConnection(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.25")+standin.A100(1, "sm=0.75")+standin.Groups+"dead at=1s for=700ms\n", plan{For: 6 * time.Second, Every: 300 * time.Millisecond})
	for ref, sm := range []float64{0.25, 0.75} {
		windows := o.Windows(uint16(ref))
		if len(windows) < 20 {
			t.Fatalf("%d windows of GPU %d", len(windows), ref)
		}
		for i, w := range windows {
			if w.Values["sm"] != sm || i > 0 && w.Begin < windows[i-1].End {
				t.Errorf("GPU %d: %+v", ref, w)
			}
		}
	}
	if e := o.Events(); len(e) != 2 || e[0].Code != recording.GPUEventRestated {
		t.Errorf("events %+v", e)
	}
}

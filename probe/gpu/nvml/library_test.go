//go:build linux && cgo

package nvml

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
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
	Use     []uint16      // GPUs to count; nil = all
	Patient time.Duration // with a call; 0 = for ever
}

// TestMain carries out a plan when this test binary is run again: the stand-in libraries play one scenario a process.
func TestMain(m *testing.M) {
	var p plan
	if standin.Playing(&p) {
		json.NewEncoder(os.Stdout).Encode(standin.Sampled(p.open, p.For, p.Every))
		return
	}
	flag.Parse()
	flag.Set("test.parallel", "24") // the scenarios mostly sleep
	code := m.Run()
	standin.Remove()
	os.Exit(code)
}

func (p plan) open(ctx context.Context) (gpu.Source, error) {
	if p.GPM {
		g, err := OpenGPM(ctx, p.Options)
		if err == nil && p.Use != nil {
			g.Use(p.Use)
		}
		return either(g, err)
	}
	s, err := either(OpenStates(ctx))
	if err == nil && p.Patient != 0 {
		s = gpu.Patient(s, p.Patient)
	}
	return s, err
}

func either[S gpu.Source](s S, err error) (gpu.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func sampled(t *testing.T, scenario string, p plan) (o standin.Outcome) {
	t.Helper()
	standin.Play(t, scenario, p, &o)
	return o
}

// says fails unless the text has all of these words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

func short() plan { return plan{For: 900 * time.Millisecond, Every: 300 * time.Millisecond} }

func TestWhereNVMLIsNotTheReasonIsSaid(t *testing.T) {
	t.Parallel()
	a100 := standin.A100(0, "sm=0.5")
	for scenario, words := range map[string][]string{
		a100 + "no-driver\n":                    {"driver is not loaded"},
		a100 + "fail call=nvmlInit_v2 code=4\n": {"Insufficient Permissions"},
		"":                                      {"NVML sees no GPU it may open"},
		standin.A100(0, "no-permission=1"):      {"NVML sees no GPU it may open", "GPU 0", "Insufficient Permissions"},
	} {
		t.Run(words[0], func(t *testing.T) {
			t.Parallel()
			says(t, sampled(t, scenario, short()).OpenError, words...)
		})
	}
	t.Run("no library", func(t *testing.T) {
		t.Parallel()
		var o standin.Outcome
		standin.PlayWith(t, t.TempDir(), a100, short(), &o)
		says(t, o.OpenError, "libnvidia-ml.so.1 is not here")
	})
}

// TestFunctionsOfANewerDriverAreNotCalledOnAnOlderOne: a call of a function that is not there would end the process.
func TestFunctionsOfANewerDriverAreNotCalledOnAnOlderOne(t *testing.T) {
	t.Parallel()
	newer := []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetTotalEnergyConsumption",
		"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetSamples", "nvmlEventSetCreate", "nvmlEventSetWait_v2",
		"nvmlDeviceGetMigMode", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth",
		"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmMetricsGet"}
	old := standin.Without(t, newer...)
	t.Run("states", func(t *testing.T) {
		t.Parallel()
		var o standin.Outcome
		standin.PlayWith(t, old, standin.A100(0, "sm=0.5 resident=1"), short(), &o)
		states := o.States(0)
		if len(states) < 2 {
			t.Fatalf("%+v", o)
		}
		for _, s := range states {
			for _, name := range []string{"used", "memory", "reasons", "power-limit", "max-clock", "resident", "generation", "max-width"} {
				if v, known := s.Values[name]; known {
					t.Errorf("%s is %v from nowhere", name, v)
				}
			}
			if s.Values["power"] != 180 || s.Values["clock"] != 1410e6 || s.Values["width"] != 16 {
				t.Errorf("what the older driver has is lost: %+v", s)
			}
		}
	})
	t.Run("gpm", func(t *testing.T) {
		t.Parallel()
		var o standin.Outcome
		standin.PlayWith(t, old, standin.H100(0, "sm=0.5"), plan{GPM: true, For: time.Second, Every: 300 * time.Millisecond}, &o)
		says(t, o.OpenError, "no GPU here has counters that NVML can read")
	})
}

// Of a library that lacks what any driver has, as one that stands in for it, what it has is read; without what names a GPU nothing is.
func TestNoFunctionIsCalledThatIsNotThere(t *testing.T) {
	t.Parallel()
	var o standin.Outcome
	standin.PlayWith(t, standin.Without(t, "nvmlEventSetFree", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetClockInfo", "nvmlDeviceGetComputeRunningProcesses_v3"),
		standin.A100(0, "sm=0.5 resident=1 no-energy=1")+"process gpu=0 pid=7\n", short(), &o)
	states := o.States(0)
	if len(states) < 2 || len(o.Polls[0].Processes) != 0 {
		t.Fatalf("%+v", o)
	}
	for _, s := range states {
		_, power := s.Values["power"]
		_, clock := s.Values["clock"]
		if power || clock || s.Values["memory"] == 0 {
			t.Errorf("%+v", s)
		}
	}
	standin.PlayWith(t, standin.Without(t, "nvmlDeviceGetUUID"), standin.A100(0, "sm=0.5"), short(), &o)
	says(t, o.OpenError, "of another version", "nvmlDeviceGetUUID")
}

func TestTheClocksReasonsHadAnotherNameOnce(t *testing.T) {
	t.Parallel()
	var o standin.Outcome
	standin.PlayWith(t, standin.Without(t, "nvmlDeviceGetCurrentClocksEventReasons"), standin.A100(0, "reasons=4"), short(), &o)
	for _, s := range o.States(0) {
		if s.Values["reasons"] != 4 {
			t.Errorf("reasons %v", s.Values["reasons"])
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// engine is a socket at which somebody listens, as a host engine does.
func engine(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "engine")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return socket
}

// recordReport runs datawait (this test binary, see TestMain) under a scenario of the stand-in libraries, with
// somebody listening where the host engine should, and returns the JSON report and what was said.
func recordReport(t *testing.T, scenario, gpu string, script string) (report map[string]any, said string) {
	t.Helper()
	return recordBy(t, "datawait", scenario, gpu, script)
}

// recordBy is recordReport by some binary.
func recordBy(t *testing.T, binary, scenario, gpu string, script string) (report map[string]any, said string) {
	t.Helper()
	dir := t.TempDir()
	socket := engine(t)
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "record", "--gpu", strings.ReplaceAll(gpu, "ENGINE", socket), "--out", "out", "--", python(), "train.py")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), standin.Environment(t, scenario)...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	return report, string(output)
}

// training is a short job whose fetches and steps are seen without PyTorch.
const training = `
import time, datawait
for batch in datawait.watch(range(60), workers=0):
    time.sleep(0.05)
`

func TestTheReportHasDCGMsCounters(t *testing.T) {
	t.Parallel()
	report, said := recordReport(t, standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9")+standin.Groups, "dcgm=ENGINE", training)
	gpus := report["gpus"].([]any)
	if len(gpus) != 1 {
		t.Fatalf("%d GPUs\n%s", len(gpus), said)
	}
	g := gpus[0].(map[string]any)
	sm := g["sm_active_ratio"].(map[string]any)
	if g["uuid"] != standin.UUID(0) || g["source"] != "dcgm" || g["emulated"] != false || sm["grade"] == "C" {
		t.Errorf("GPU %+v", g)
	}
	for name, want := range map[string]any{"SM activity": 0.42, "tensor": 0.2, "resident": 0.9} {
		got := map[string]any{"SM activity": sm["value"], "tensor": g["tensor_active_ratio"], "resident": g["resident_ratio"]}[name].(float64)
		if got < want.(float64)-0.001 || got > want.(float64)+0.001 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if coverage := g["coverage"].(float64); coverage < 0.7 {
		t.Errorf("the counters cover %v of the run", coverage)
	}
}

// TestTheReportSaysWhyThereAreNoCounters has what people meet most.
func TestTheReportSaysWhyThereAreNoCounters(t *testing.T) {
	busy := standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9") + standin.Groups
	for name, c := range map[string]struct {
		scenario string
		words    []string
	}{
		"the profiling module is missing": {busy + "no-profiling code=-33\n", []string{"datacenter-gpu-manager-4-proprietary", "restart the nvidia-dcgm service"}},
		"the engine has no root":          {busy + "no-profiling when=watch code=-29\n", []string{"run the nvidia-dcgm service as root"}},
		"somebody else has the counters":  {busy + "no-profiling when=watch code=-37\n", []string{"somebody else owns the counters", "Nsight"}},
		"no counters can be combined":     {busy + "no-profiling when=watch code=-38\n", []string{"other clients of this engine"}},
		"the driver is not loaded":        {busy + "no-driver\n", []string{"sees no GPU", "is the NVIDIA driver loaded"}},
		"it is no engine":                 {busy + "not-dcgm\n", []string{"does not answer as a host engine"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, said := recordReport(t, c.scenario, "dcgm=ENGINE", training)
			why := report["quality"].(map[string]any)["gpu"].(map[string]any)["why"].(string)
			for _, w := range c.words {
				if !strings.Contains(unwrapped(said), w) {
					t.Errorf("the terminal does not say %q", w)
				}
				if !strings.Contains(why, w) {
					t.Errorf("the report's reason %q does not say %q", why, w)
				}
			}
			for _, g := range report["gpus"].([]any) {
				if sm := g.(map[string]any)["sm_active_ratio"]; sm != nil {
					t.Errorf("SM activity %v from nowhere", sm)
				}
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}

// unwrapped puts what was broken into lines for a terminal back together.
func unwrapped(said string) string { return strings.Join(strings.Fields(said), " ") }

func TestAnEngineThatDiesInTheMiddleIsToldAndWhatItCountedStays(t *testing.T) {
	t.Parallel()
	report, said := recordReport(t, standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9")+standin.Groups+"dead at=6s\n", "dcgm=ENGINE", eightSeconds)
	g := report["gpus"].([]any)[0].(map[string]any)
	sm, ok := g["sm_active_ratio"].(map[string]any)
	if !ok || sm["value"].(float64) < 0.419 || sm["value"].(float64) > 0.421 || sm["grade"] == "A" {
		t.Errorf("SM activity %+v", g["sm_active_ratio"])
	}
	warnings := fmt.Sprint(report["quality"].(map[string]any)["warnings"])
	if !strings.Contains(warnings, "the connection to the host engine is lost") {
		t.Errorf("warnings %s", warnings)
	}
	if t.Failed() {
		t.Log(said)
	}
}

func TestAGPUThatFallsOffTheBusIsAnEventAndNotIdle(t *testing.T) {
	t.Parallel()
	report, said := recordReport(t, standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9")+standin.Groups+"gone gpu=0 at=6s\nxid gpu=0 code=79 at=6s\n", "dcgm=ENGINE", eightSeconds)
	g := report["gpus"].([]any)[0].(map[string]any)
	sm, ok := g["sm_active_ratio"].(map[string]any)
	if !ok || sm["value"].(float64) < 0.419 || sm["value"].(float64) > 0.421 {
		t.Errorf("SM activity %+v", g["sm_active_ratio"])
	}
	events, _ := json.Marshal(g["events"])
	if !strings.Contains(string(events), "79") || !strings.Contains(unwrapped(said), "Xid 79") {
		t.Errorf("events %s", events)
	}
	if t.Failed() {
		t.Log(said)
	}
}

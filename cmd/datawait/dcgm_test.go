package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// recordReport runs datawait (this test binary, see TestMain) under a scenario of the stand-in libraries, with
// somebody listening where the host engine should, and returns the JSON report and what was said.
func recordReport(t *testing.T, scenario, gpu string, script string) (report map[string]any, said string) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "engine")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("datawait", "record", "--gpu", strings.ReplaceAll(gpu, "ENGINE", socket), "--out", "out", "--", python(), "train.py")
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

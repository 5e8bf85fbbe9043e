package main

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// What a driver tells of a GPU reaches the reader: who holds it, an error, a clock held down, a link below what is possible; and the ladder
// stands in hours beside the shares.
func TestTheReportHasWhatTheDriverTells(t *testing.T) {
	report, said := recordReport(t, standin.A100(0, "sm=0.42 tensor=0.2 resident=0.9 fp32=0.1 reasons=32 clock=1000 max-clock=1410 generation=4 max-generation=4 width=8 max-width=16")+
		standin.Groups+"process gpu=0 pid=77 memory=1024\nxid gpu=0 code=31 at=1s\n", "dcgm=ENGINE", training)
	g := report["gpus"].([]any)[0].(map[string]any)
	allocated := g["allocated_ns"].(float64) / 3600e9
	for _, r := range g["ladder"].([]any) {
		r := r.(map[string]any)
		share, known := map[string]float64{"allocated": 1, "resident": 0.9, "sm_active": 0.42, "tensor_active": 0.2}[r["name"].(string)]
		if !known {
			continue
		}
		if got, hours := r["ratio"].(float64), r["gpu_hours"].(float64); math.Abs(got-share) > 0.002 || math.Abs(hours-share*allocated) > 0.002*allocated || r["grade"] == nil {
			t.Errorf("rung %+v, want %v of %v h", r, share, allocated)
		}
	}
	state := g["state"].(map[string]any)
	for name, want := range map[string]float64{"sm_clock_hz": 1000e6, "sm_clock_max_hz": 1410e6, "thermal_ratio": 1, "power_cap_ratio": 0, "pcie_lanes": 8, "pcie_lanes_max": 16} {
		if got, ok := state[name].(float64); !ok || math.Abs(got-want) > 1e-6*(1+want) {
			t.Errorf("%s is %v, want %v", name, state[name], want)
		}
	}
	if n, ok := g["processes"].(float64); !ok || n != 1 {
		t.Errorf("%v processes", g["processes"])
	}
	if fp32 := g["pipes"].(map[string]any)["fp32_active_ratio"].(float64); math.Abs(fp32-0.1) > 0.001 {
		t.Errorf("FP32 pipe %v", fp32)
	}
	if held, ok := g["held_ratio"].(float64); !ok || held != 1 {
		t.Errorf("held %v", g["held_ratio"])
	}
	for _, s := range []string{"Xid 31", "held down by temperature", "8 lanes of PCIe generation 4", "GPU-seconds: allocated"} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), s) {
			t.Errorf("%q is not on the screen:\n%s", s, said)
		}
	}
}

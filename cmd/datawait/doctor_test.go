package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/datawait/datawait/cmd/datawait/internal/doctor"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// bare is a Python without any package, PyTorch neither, whose rehearsal begins at once.
var bare = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "datawait-bare-")
	if err == nil {
		err = exec.Command("python3", "-m", "venv", "--without-pip", dir).Run()
	}
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "bin", "python3")
})

// examine runs doctor under a scenario of the stand-in libraries, and returns what it found and what it shows.
func examine(t *testing.T, scenario string, arguments ...string) doctor.Document {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "engine")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for i := range arguments {
		arguments[i] = strings.ReplaceAll(arguments[i], "ENGINE", socket)
	}
	cmd := exec.Command("datawait", append([]string{"doctor", "--format", "json", "--python", bare()}, arguments...)...)
	cmd.Env = os.Environ()
	if scenario != "" {
		cmd.Env = append(cmd.Env, standin.Environment(t, scenario)...)
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaint.String())
	}
	var found doctor.Document
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	if found.Schema != doctor.Schema {
		t.Errorf("schema %q", found.Schema)
	}
	return found
}

// finding returns the first with this ID.
func finding(t *testing.T, d doctor.Document, id string) doctor.Finding {
	t.Helper()
	for _, f := range d.Findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no finding %s among %+v", id, d.Findings)
	return doctor.Finding{}
}

// What a person reads on machines that differ in one thing: the state and grade of SM activity, words of the reason, and of what
// raises it.
func TestDoctorNamesWhatLimitsSMActivity(t *testing.T) {
	a100 := standin.A100(0, "sm=0.4 tensor=0.2 resident=1") + standin.Groups
	for _, c := range []struct {
		name, scenario, gpu string
		state               doctor.State
		grade, says, raise  string
	}{
		{"DCGM counts", a100, "dcgm=ENGINE", doctor.Good, "A", "SM activity from dcgm", ""},
		{"DCGM without its profiling module", a100 + "no-profiling code=-33\n", "dcgm=ENGINE",
			doctor.Limited, "C", "GPU-util stands in", "datacenter-gpu-manager-4-proprietary"},
		{"an engine without root", a100 + "no-profiling code=-29\n", "dcgm=ENGINE", doctor.Limited, "C", "without root", "as root"},
		{"another owner of the counters", a100 + "no-profiling code=-37\n", "dcgm=ENGINE", doctor.Limited, "C", "somebody else owns", "other host engine"},
		{"another client that asks more often", a100 + "watcher interval=100ms\n", "dcgm=ENGINE", doctor.Good, "A", "windows of 100ms", ""},
		{"Hopper without DCGM", standin.H100(0, "sm=0.4"), "nvml", doctor.Good, "A", "SM activity from nvml-gpm", ""},
		{"an A100 without DCGM", standin.A100(0, "sm=0.4"), "nvml", doctor.Limited, "C", "came with Hopper", "nvidia-dcgm"},
		{"no driver", "no-driver\n", "nvml", doctor.Missing, "", "driver is not loaded", "modprobe nvidia"},
		{"no libraries", "", "nvml", doctor.Missing, "", "libnvidia-ml.so.1 is not here", "--gpus all"},
		{"nobody listens", a100, "dcgm=/nowhere", doctor.Limited, "C", "no host engine at /nowhere", "systemctl start nvidia-dcgm"},
		{"the emulated device", "", "emulated", doctor.Good, "A", "(emulated)", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := examine(t, c.scenario, "--gpu", c.gpu)
			f := finding(t, d, "gpu")
			if f.State != c.state || f.Grade != c.grade || !strings.Contains(f.Says, c.says) || !strings.Contains(f.Raise, c.raise) || c.raise == "" && f.Raise != "" {
				t.Errorf("found %+v, want %s %q, %q, %q", f, c.state, c.grade, c.says, c.raise)
			}
		})
	}
}

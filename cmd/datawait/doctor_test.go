package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/datawait/datawait/cmd/datawait/internal/doctor"
	"github.com/datawait/datawait/probe/gpu/standin"
)

// bareDir is the folder that bare made, "" before.
var bareDir string

// bare is a Python without any package, PyTorch neither, whose rehearsal begins at once.
var bare = sync.OnceValue(func() string {
	var err error
	if bareDir, err = os.MkdirTemp("", "datawait-bare-"); err == nil {
		err = exec.Command("python3", "-m", "venv", "--without-pip", bareDir).Run()
	}
	if err != nil {
		panic(err)
	}
	return filepath.Join(bareDir, "bin", "python3")
})

// examine runs doctor under a scenario of the stand-in libraries, and returns what it found and what it shows.
func examine(t *testing.T, scenario string, arguments ...string) doctor.Document {
	t.Helper()
	socket := engine(t)
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
		{"an engine without root", a100 + "no-profiling code=-29\n", "dcgm=ENGINE", doctor.Limited, "C", "as non-root", "as root"},
		{"another owner of the counters", a100 + "no-profiling code=-37\n", "dcgm=ENGINE", doctor.Limited, "C", "somebody else owns", "other host engine"},
		{"another client that asks more often", a100 + "watcher interval=100ms\n", "dcgm=ENGINE", doctor.Good, "A", "windows of 100ms", ""},
		{"Hopper without DCGM", standin.H100(0, "sm=0.4"), "nvml", doctor.Good, "A", "SM activity from nvml-gpm", ""},
		{"an A100 without DCGM", standin.A100(0, "sm=0.4"), "nvml", doctor.Limited, "C", "came with Hopper", "nvidia-dcgm"},
		{"no driver", "no-driver\n", "nvml", doctor.Missing, "", "driver is not loaded", "modprobe nvidia"},
		{"no libraries", "", "nvml", doctor.Missing, "", "libnvidia-ml.so.1 is not here", "--gpus all"},
		{"nobody listens", a100, "dcgm=/nowhere", doctor.Limited, "C", "no host engine at /nowhere", "systemctl start nvidia-dcgm"},
		{"a driver that hangs", a100 + "hang call=nvmlInit_v2\n", "nvml", doctor.Missing, "", "before any source of GPU counters had answered", "nvidia-smi"},
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

// captured runs doctor --capture under a scenario and returns the file.
func captured(t *testing.T, scenario, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	examine(t, scenario, "--gpu", source, "--capture", path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// directives are the lines of a capture that are played back.
func directives(capture string) (lines string) {
	for line := range strings.Lines(capture) {
		if !strings.HasPrefix(line, "#") {
			lines += line
		}
	}
	return lines
}

// findings reads the document that a capture ends with.
func findings(t *testing.T, capture string) (d doctor.Document) {
	t.Helper()
	_, text, _ := strings.Cut(capture, "\n# {")
	if err := json.Unmarshal([]byte("{"+strings.ReplaceAll(text, "\n#", "\n")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A capture says of a machine what its libraries say: played back, it gives the same findings, and the same capture.
func TestACapturePlayedBackIsCapturedTheSame(t *testing.T) {
	for name, c := range map[string]struct{ scenario, source string }{
		"A100 with DCGM": {standin.A100(0, "sm=0.4 tensor=0.2 resident=1 clock=1200 reasons=4") + standin.A100(1, "sm=0.1 no-energy=1") + standin.Groups +
			"process gpu=0 pid=4711 memory=2048\n", "dcgm=ENGINE"},
		"an engine without root": {standin.A100(0, "") + standin.Groups + "no-profiling code=-29\n", "dcgm=ENGINE"},
		"H100":                   {standin.H100(0, "sm=0.4 tensor=0.3") + "fail call=nvmlDeviceGetMemoryInfo_v2 code=3\n", "nvml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := captured(t, c.scenario, c.source)
			if strings.Contains(first, "pid=4711") || strings.Contains(first, hostname(t)) {
				t.Errorf("not masked:\n%s", first)
			}
			second := captured(t, first, c.source)
			if directives(first) != directives(second) || directives(first) == "" {
				t.Errorf("captured\n%s\nplayed back it gives\n%s", directives(first), directives(second))
			}
			sameOfGPUs(t, findings(t, first), findings(t, second))
		})
	}
}

func hostname(t *testing.T) string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		t.Fatal("this machine has no name: ", err)
	}
	return "\"" + name + "\""
}

// sameOfGPUs holds that a document says of GPUs what another said; it may say more. Numbers of windows differ from run to run.
func sameOfGPUs(t *testing.T, want, got doctor.Document) {
	t.Helper()
	gpus := func(d doctor.Document) (all []doctor.Finding) {
		for _, f := range d.Findings {
			if f.Subject == doctor.GPUs {
				all = append(all, doctor.Finding{ID: f.ID, State: f.State, Grade: f.Grade, Raise: f.Raise})
			}
		}
		return all
	}
	if len(gpus(want)) == 0 {
		t.Error("nothing is said of GPUs")
	}
	for _, f := range gpus(want) {
		if !slices.Contains(gpus(got), f) {
			t.Errorf("findings %+v lack %+v", gpus(got), f)
		}
	}
}

// Captures of machines that somebody had (testdata/captures) still give the findings they were sent with.
func TestCommittedCapturesGiveTheirFindings(t *testing.T) {
	paths, _ := filepath.Glob("testdata/captures/*.scenario")
	if len(paths) == 0 {
		t.Fatal("no capture is committed")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			source := "nvml"
			if strings.Contains(directives(string(text)), "\ngroup ") || strings.Contains(string(text), "\nengine ") {
				source = "dcgm=ENGINE"
			}
			sameOfGPUs(t, findings(t, string(text)), examine(t, string(text), "--gpu", source))
		})
	}
}

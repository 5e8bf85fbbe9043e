// Package standin makes libraries that stand in for NVIDIA's, so that tests drive the real bindings end to end without a GPU:
// our own libdcgm.so.4 and libnvidia-ml.so.1, written in C (folder csrc) over one reader of busy logs.
//
// A process that is to load them gets their folder as LD_LIBRARY_PATH and a scenario as DATAWAIT_STANDIN ([Environment]). A
// scenario is played once per process, so every case of a test runs in a process of its own.
//
// # Scenario
//
// One directive a line: a word and key=value pairs; a value with spaces stands in double quotes, # begins a comment. Durations
// are written 150ms, 2s, 30us. at= and for= say when a directive is in force, counted from the start; without for= it is so from
// at= on, without both always. What there is:
//
//	start at=NS                         CLOCK_MONOTONIC that times count from; default: when the library is loaded
//	driver version=570.00.00 nvml=12.570.00.00 cuda=12080
//	engine version=4.6.0 rss=30e6 cpu=0.01 rpc=800us      DCGM's host engine; rpc is what asking for one field costs
//	gpu id=0 uuid=GPU-… name="NVIDIA A100-SXM4-80GB" pci=… busy=PATH    a GPU that does what a busy log says …
//	gpu id=1 uuid=GPU-… sm=0.5 tensor=0.2 resident=1 copy=0            … or always the same
//	    more keys: memory= used= (MiB) idle= busy-power= power-limit= (W) clock= max-clock= memory-clock= (MHz) reasons=
//	    generation= width= max-generation= max-width= util= (GPU-util 0-1) engine= occupancy= dram= fp32= pcie-in= pcie-out= nvlink=
//	    gpm=1 (NVML has its counters) gpm-forbidden=1 (and using them ends the process) mig=1 architecture= no-energy=1 no-permission=1
//	gi id=0 gpu=0 gi=1 slices=3         a GPU instance; its id is DCGM's entity, gi= is NVML's instance
//	ci id=0 in=0 ci=0 uuid=MIG-… sm=…   a compute instance in gi id=0
//	group major=0 minor=1 fields=1002,1003,1004,1007   a metric group; groups of one major cannot be counted together
//	process gpu=0 pid=123 memory=1024   a process with a context (MiB)
//
// What goes wrong:
//
//	no-driver                           NVML does not initialise, DCGM sees no GPU
//	no-profiling code=-33               DCGM's profiling module: not loaded, or any code it refuses with;
//	    when=groups or when=watch: only what it is asked then; gpu=N: only of this GPU
//	no-device gpu=1                     DCGM does not list the GPU
//	not-dcgm                            what listens takes connections and is no host engine
//	one-at-a-time                       values of several GPUs in one call are refused
//	count-watches                       each watch is told on the standard error
//	no-group gpu=1                      the GPU cannot be added to a group
//	no-field id=155                     the engine does not know the field
//	fail call=NAME code=N               a function (NAME may end in *) fails
//	hang call=NAME timeout=60s          a function does not return while this is in force, or until its time-out
//	dead                                the host engine is gone; connections from before stay invalid
//	gone gpu=1                          the GPU fell off the bus
//	xid gpu=0 code=79 at=2s             gi=: of this instance alone
//	late by=150ms                       profiling samples appear so long after their time
//	lose share=0.3                      of the samples are never stored
//	frozen gpu=0                        no sample is stored; field=N: of this field
//	first-blank                         the first profiling sample of a watch is blank, as two are needed
//	left age=30s                        a sample that another client's watch has left, so old when ours begins
//	multiplex                           groups of one major are watched together: each reads 0 half of the time
//	clock by=3600s at=2s                the engine's wall clock is stepped
//	watcher interval=100ms              another client watches the same fields; field=1006: this field
//	taken name=N                        another client has a field group of this name; first=N: of the first N that are asked for
//	value gpu=0 field=1002 v=…          a number, or blank, not-found, not-supported, not-permissioned, int32-blank; also gi= ci=
//	status gpu=0 field=1002 code=-14    of the sample
//	set gpu=0 KEY=VALUE                 another value of a gpu key, to NVML only
//	energy-reset at=2s                  NVML's energy counter starts anew
package standin

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Environment returns what a process needs beside its own environment to load the libraries and play the scenario.
func Environment(t testing.TB, scenario string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario")
	if err := os.WriteFile(path, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"LD_LIBRARY_PATH=" + Libraries(t), "DATAWAIT_STANDIN=" + path}
}

// planVariable carries a plan to the process that plays it.
const planVariable = "DATAWAIT_TEST_PLAN"

// Playing reports whether this process was started by [Play], and decodes its plan. For TestMain.
func Playing(plan any) bool {
	text, ok := os.LookupEnv(planVariable)
	if ok {
		if err := json.Unmarshal([]byte(text), plan); err != nil {
			panic(err)
		}
	}
	return ok
}

// Play runs this test binary again under the scenario, which there carries out the plan and prints the outcome as JSON.
func Play(t testing.TB, scenario string, plan, outcome any) {
	t.Helper()
	PlayWith(t, Libraries(t), scenario, plan, outcome)
}

// PlayWith is Play with the libraries of a folder.
func PlayWith(t testing.TB, libraries, scenario string, plan, outcome any) {
	t.Helper()
	cmd := Command(t, libraries, scenario, plan)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaint.String())
	}
	if err := json.Unmarshal(out, outcome); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Command is what Play runs.
func Command(t testing.TB, libraries, scenario string, plan any) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), Environment(t, scenario)...), "LD_LIBRARY_PATH="+libraries, planVariable+"="+string(text))
	return cmd
}

// A100 returns the lines of an A100 with its usual metric groups; more is added to its gpu line.
func A100(id int, more string) string {
	return fmt.Sprintf("gpu id=%d uuid=%s name=\"NVIDIA A100-SXM4-80GB\" %s\n", id, UUID(id), more)
}

// UUID is that of the GPU that [A100] and [H100] make.
func UUID(id int) string { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", id) }

// H100 returns the line of an H100, which NVML has counters of itself.
func H100(id int, more string) string {
	return fmt.Sprintf("gpu id=%d uuid=%s name=\"NVIDIA H100 80GB HBM3\" architecture=9 gpm=1 %s\n", id, UUID(id), more)
}

// Groups are the metric groups of an A100, as `dcgmi profile --list` shows them.
const Groups = `
group major=0 minor=1 fields=1002,1003,1004,1007
group major=0 minor=2 fields=1006
group major=0 minor=3 fields=1008
group major=1 minor=0 fields=1005
group major=2 minor=0 fields=1009,1010
group major=3 minor=0 fields=1001
group major=4 minor=0 fields=1011,1012
`

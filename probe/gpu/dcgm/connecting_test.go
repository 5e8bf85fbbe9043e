//go:build linux && cgo

package dcgm

import (
	"debug/elf"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// connecting is how it begins.
var connecting = []behaviour{
	{"no-driver", "an engine without a driver is not one without work", one + "no-driver\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			says(t, o.OpenError, "sees no GPU", "driver loaded where it runs")
		}},
	{"engine-dies", "an engine that died at its start is one that does not listen", one, plan{Deaf: true, Options: Options{Address: "127.0.0.1:1"}},
		func(t *testing.T, o standin.Outcome) {
			says(t, o.OpenError, "no host engine at 127.0.0.1:1", "connection refused")
		}},
	{"nobody-listens", "nobody at a socket is said at once and by name", one, plan{Deaf: true, Options: Options{Address: "unix:///nowhere/engine"}},
		func(t *testing.T, o standin.Outcome) {
			says(t, o.OpenError, "no host engine at unix:///nowhere/engine", "no such file")
		}},
	{"bad-host", "a host name that does not exist is called that", one, plan{Deaf: true, Options: Options{Address: "engine.invalid:5555"}},
		func(t *testing.T, o standin.Outcome) {
			says(t, o.OpenError, "no host engine at engine.invalid:5555", "engine.invalid")
		}},
	{"stranger-listens", "what is no host engine is called that", one + "not-dcgm\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			says(t, o.OpenError, "what listens at 127.0.0.1:", "does not answer as a host engine")
		}},
	{"hung-before", "an engine that hangs from the start costs the patience and no more", one + "hang call=dcgmConnect_v2\n",
		plan{Options: Options{Patience: 300 * time.Millisecond}},
		func(t *testing.T, o standin.Outcome) { says(t, o.OpenError, "the host engine does not answer") }},
	{"nvml-absent", "GPUs that cannot be watched for want of NVML ask for a restart of the engine", one + "no-profiling when=watch code=-56\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			says(t, missing(o, 0), "NVML doesn't exist", "restart the nvidia-dcgm service")
		}},
	{"unnamed-gpu", "a GPU that cannot be told apart does not take the others along", one + standin.A100(1, "sm=1") + "status gpu=1 field=54 code=-16\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 5)
			says(t, o.DevicesError, "GPU 1", "does not tell its UUID")
		}},
	{"connected", "an engine at a socket is as good as one at a port", one, plan{Unix: true},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 5); quiet(t, o, 3) }},
	{"connected", "an engine in this process counts when it is asked for", one, plan{Deaf: true, Options: Options{Embedded: true}},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 5); quiet(t, o, 3) }},
	{"connected", "an engine in this process is never a way out", one, plan{Deaf: true, Options: Options{Address: "127.0.0.1:1"}},
		func(t *testing.T, o standin.Outcome) {
			if len(o.Polls) > 0 || o.OpenError == "" {
				t.Errorf("%d polls, %q", len(o.Polls), o.OpenError)
			}
		}},
	{"connected", "values are asked for one GPU at a time", one + standin.A100(1, "sm=0.5 resident=1") + "one-at-a-time\n", plan{},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 5); working(t, o, 1, 5); quiet(t, o, 3) }},
	{"struct-versions", "the structures that are passed are those the engine takes", one, plan{},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 5); quiet(t, o, 3) }},
	{"struct-versions", "an engine that takes other structures is not called idle", one + "fail call=dcgmProfGetSupportedMetricGroups code=-12\n", plan{},
		func(t *testing.T, o standin.Outcome) { says(t, missing(o, 0), "version mismatch") }},
}

func TestWithoutDCGMsLibraryTheReasonIsSaidAndNothingIsCalled(t *testing.T) {
	t.Parallel()
	var o standin.Outcome
	standin.PlayWith(t, t.TempDir(), one, plan{For: time.Second}, &o)
	says(t, o.OpenError, "libdcgm.so.4", "datacenter-gpu-manager-4-core")
}

func TestALibraryWithoutAFunctionIsRefusedBeforeItEndsTheProcess(t *testing.T) {
	t.Parallel()
	var o standin.Outcome
	standin.PlayWith(t, standin.Without(t, "dcgmGetGpuInstanceHierarchy", "dcgmGetValuesSince_v2"), one, plan{For: time.Second}, &o)
	says(t, o.OpenError, "of another version", "dcgmGetGpuInstanceHierarchy, dcgmGetValuesSince_v2")
}

// TestNothingIsCalledThatIsNotLookedUp plays what there is to a library that has the functions looked up and no other.
func TestNothingIsCalledThatIsNotLookedUp(t *testing.T) {
	t.Parallel()
	file, err := elf.Open(filepath.Join(standin.Libraries(t), "libdcgm.so.4"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "dcgm") && s.Section != elf.SHN_UNDEF && !slices.Contains(needed, s.Name) {
			others = append(others, s.Name)
		}
	}
	if len(others) < 5 {
		t.Fatalf("the stand-in has only %q beside", others)
	}
	var o standin.Outcome
	standin.PlayWith(t, standin.Without(t, others...), standin.A100(0, "mig=1")+standin.A100(1, "sm=0.5 resident=1")+mig+standin.Groups+
		"gone gpu=1 at=4s\ndead at=1s for=300ms\n", plan{For: 6 * time.Second, Every: 300 * time.Millisecond}, &o)
	working(t, o, 0, 10)
	says(t, why(o, 2), "the GPU is lost")
}

// TestASocketThatMayNotBeUsedIsNotOneThatIsMissing gives this thread's rights to files up, if it has them all.
func TestASocketThatMayNotBeUsedIsNotOneThatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(filepath.Dir(dir), 0o755) // those that are ours
	}
	told := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if os.Geteuid() == 0 {
			syscall.Setfsuid(65534)
		}
		_, err := listening(path)
		told <- err
	}()
	err = <-told
	if err == nil {
		t.Fatal("connected")
	}
	says(t, err.Error(), "no host engine at "+path, "permission denied")
}

// TestGPUsOfAModelAreWatchedTogetherAndOthersApart: an engine refuses or blanks a mixed group, and has room for few.
func TestGPUsOfAModelAreWatchedTogetherAndOthersApart(t *testing.T) {
	t.Parallel()
	scenario := one + standin.A100(1, "sm=0.5") + standin.H100(2, "sm=0.5") + standin.A100(3, "sm=0.5") + "count-watches\n"
	cmd := standin.Command(t, standin.Libraries(t), scenario, plan{For: time.Second, Every: 500 * time.Millisecond})
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Run(); err != nil {
		t.Fatal(err, told.String())
	}
	got := strings.Split(strings.TrimSpace(told.String()), "\n")
	slices.Sort(got)
	if want := []string{"watch of 1 entities and 10 fields", "watch of 3 entities and 10 fields", "watch of 4 entities and 4 fields"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheEngineDiesOfALiveReadOfAProfilingField shows that the stand-in would tell: it dies as the engine does.
func TestTheEngineDiesOfALiveReadOfAProfilingField(t *testing.T) {
	t.Parallel()
	cmd := standin.Command(t, standin.Libraries(t), one, plan{LiveProfiling: true})
	err := cmd.Run()
	exit, ok := err.(*exec.ExitError)
	if !ok || !strings.Contains(exit.String(), "abort") && exit.ExitCode() != 2 {
		t.Errorf("a live read of SM activity ended with %v", err)
	}
}

// TestCallsThatHarmOrMisleadAreNotMade: what go-dcgm offers and this package must not use.
func TestCallsThatHarmOrMisleadAreNotMade(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) < 10 {
		t.Fatal(sources, err)
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for call, harm := range map[string]string{
			"bind.StartHostengine":          "starts an engine, which takes the counters from one that runs",
			"bind.GetDeviceInfo":            "watches fields by itself, is empty without an error for a GPU that is not there, and knows no PCIe generation 5",
			"bind.GetLatestValuesForFields": "its errors speak of watching",
			"bind.GroupAllGPUs":             "mixes models",
		} {
			if strings.Contains(string(text), call) {
				t.Errorf("%s calls %s, which %s", path, call, harm)
			}
		}
	}
}

package cost

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkAgent watches `datawait record` beside a job of eight ranks with two workers each, on eight emulated GPUs whose counters are read
// in windows of 100 ms. CPU time and memory (PSS: a page shared with its child counts once) are those of the agent and of the child
// that reads the GPUs. The bar is 1.5 % of one core and 70 MiB, and flat.
//
// It measures for two minutes each; DATAWAIT_COST_MINUTES says otherwise.
func BenchmarkAgent(b *testing.B) {
	for _, pace := range []int{5, 1000} {
		b.Run(fmt.Sprintf("steps=%d", pace), func(b *testing.B) {
			for range b.N {
				watchAgent(b, pace, nil, "--gpu", "emulated", "--interval", "100ms")
			}
		})
	}
}

// watchAgent measures an agent that is given these options and environment.
func watchAgent(b *testing.B, pace int, env []string, options ...string) {
	out := roomy(b, 2<<30)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	agent := exec.Command(binary(b), "record", "-q", "--format", "json", "--out", filepath.Join(out, "run"))
	agent.Args = append(append(agent.Args, options...), "--", self)
	agent.Env = append(append(os.Environ(), env...), partVariable+"=launcher", paceVariable+"="+strconv.Itoa(pace))
	said := &bytes.Buffer{}
	agent.Stderr = said
	if err := agent.Start(); err != nil {
		b.Fatal(err)
	}
	defer agent.Process.Kill()
	time.Sleep(10 * time.Second) // everything has started, and the first second's memory is gone
	u, err := follow(agent.Process.Pid, minutes(b))
	if err != nil {
		b.Fatalf("%v\n%s", err, said)
	}
	agent.Process.Signal(os.Interrupt)
	agent.Wait()
	checkAgent(b, filepath.Join(out, "run"), pace)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*u.cores, "core-%")
	b.ReportMetric(100*u.child, "child-core-%")
	b.ReportMetric(u.most/(1<<20), "MiB")
	b.ReportMetric(u.growth/(1<<20), "MiB-grown")
}

// minutes is how long an agent is measured.
func minutes(b *testing.B) time.Duration {
	n, err := strconv.ParseFloat(cmp.Or(os.Getenv("DATAWAIT_COST_MINUTES"), "2"), 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(n * float64(time.Minute))
}

// followed is what an agent and its child took while they were followed.
type followed struct {
	cores, child float64 // of both, and of the child alone
	most, growth float64 // bytes: the most, and the median of the last third beyond that of the first
	childMost    float64 // bytes
}

func follow(agent int, length time.Duration) (followed, error) {
	child, err := gpuChild(agent)
	if err != nil {
		return followed{}, err
	}
	before, childBefore, begin := cpuTime(agent), cpuTime(child), time.Now()
	var memory []float64
	var childMost float64
	for time.Since(begin) < length {
		time.Sleep(time.Second)
		a, c := pss(agent), pss(child)
		if a == 0 || c == 0 {
			return followed{}, fmt.Errorf("the agent or its child ended after %v", time.Since(begin))
		}
		memory, childMost = append(memory, a+c), max(childMost, c)
	}
	wall := time.Since(begin).Seconds()
	ownChild := cpuTime(child) - childBefore
	third := max(1, len(memory)/3)
	return followed{cores: (cpuTime(agent) - before + ownChild) / wall, child: ownChild / wall, most: slices.Max(memory), childMost: childMost,
		growth: median(memory[len(memory)-third:]) - median(memory[:third])}, nil
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

// gpuChild finds the child in which an agent reads GPU counters.
func gpuChild(agent int) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || parent(pid) != agent {
			continue
		}
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line), "gpu-child") {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("agent %d has no child that reads GPUs", agent)
}

// checkAgent makes sure that the agent did what it is measured for: its report tells of eight ranks, their steps and their GPUs.
func checkAgent(b *testing.B, out string, pace int) {
	b.Helper()
	var report struct {
		Ranks []struct{ Steps int }
		GPUs  []struct {
			Coverage float64 `json:"coverage"`
		}
		Job struct {
			WallSeconds float64 `json:"wall_seconds"`
		}
	}
	readJSON(b, filepath.Join(out, "report.json"), &report)
	if len(report.Ranks) != jobRanks || len(report.GPUs) != jobRanks {
		b.Fatalf("%d ranks and %d GPUs were recorded", len(report.Ranks), len(report.GPUs))
	}
	for i, k := range report.Ranks {
		if want := 0.8 * report.Job.WallSeconds * float64(pace); float64(k.Steps) < want {
			b.Errorf("rank %d made %d steps, less than %.0f: the job did not keep its pace", i, k.Steps, want)
		}
	}
}

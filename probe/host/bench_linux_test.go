package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// sleeperThreads in the environment makes the test binary a process that sleeps with that many threads more than Go needs.
const sleeperThreads = "DATAWAIT_TEST_SLEEPER"

func sleep(threads int) {
	for range threads {
		go func() {
			runtime.LockOSThread()
			f, _, err := os.Pipe()
			if err == nil {
				time.Sleep(time.Hour)
				f.Close()
			}
		}()
	}
	fmt.Println("asleep")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func startSleeper(b *testing.B, threads int) int {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sleeperThreads+"="+strconv.Itoa(threads))
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 10))
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// BenchmarkHostSample takes all samples of one second of a job with a main process of 100 threads and 16 workers, records
// them in memory, and reports the share of a core that costs at one sample a second (bar: 1.5 % for the whole agent).
func BenchmarkHostSample(b *testing.B) {
	job := []Known{{PID: startSleeper(b, 100), Role: recording.RoleMain}}
	for range 16 {
		job = append(job, Known{PID: startSleeper(b, 0), Role: recording.RoleWorker})
	}
	second := uint64(0)
	memory := recording.NewMemory(recording.Manifest{})
	id, _ := memory.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	h := New(recording.NewAppender(memory, id), Options{Job: func() []Known { return job },
		Now: func() uint64 { return clock.Mono() + second*1e9 }})
	b.Cleanup(func() { h.Close() })
	used := clock.ProcessCPU()
	for b.Loop() {
		second++
		for _, p := range h.Parts() {
			if err := p.Run(b.Context(), 0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				b.Fatal(err)
			}
		}
	}
	perSample := float64(clock.ProcessCPU()-used) / float64(b.N)
	b.ReportMetric(perSample/1e6, "cpu-ms/sample")
	b.ReportMetric(perSample/1e9*100, "%core-at-1Hz")
	threads := uint64(0)
	for _, m := range h.tree.members {
		threads += m.stat.threads
	}
	b.ReportMetric(float64(threads), "threads")
}

// BenchmarkHostParts shows what each part costs for the same job.
func BenchmarkHostParts(b *testing.B) {
	job := []Known{{PID: startSleeper(b, 100), Role: recording.RoleMain}}
	for range 16 {
		job = append(job, Known{PID: startSleeper(b, 0), Role: recording.RoleWorker})
	}
	second := uint64(0)
	memory := recording.NewMemory(recording.Manifest{})
	id, _ := memory.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	h := New(recording.NewAppender(memory, id), Options{Job: func() []Known { return job },
		Now: func() uint64 { return clock.Mono() + second*1e9 }})
	for _, p := range h.Parts() {
		b.Run(p.Name, func(b *testing.B) {
			for b.Loop() {
				second++
				if err := p.Run(b.Context(), 0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
					b.Fatal(err)
				}
			}
		})
	}
}

package cost

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkReportOfADay makes the default forms of the report of a whole day: sixteen ranks on two nodes, seven million steps, fifty
// million records. The bar is three seconds, and memory well below 1 GiB.
func BenchmarkReportOfADay(b *testing.B) {
	d := day{nodes: 2, ranks: 8, workers: 4, length: 24 * time.Hour}
	dir := roomy(b, 5<<30)
	w := d.write(b, dir)
	datawait := binary(b)
	var wall, cpu float64
	var peak int64
	for b.Loop() {
		u := measure(b, exec.Command(datawait, "report", dir))
		wall, cpu, peak = wall+u.wall, cpu+u.cpu, max(peak, u.peak)
	}
	if steps := stepsOf(b, filepath.Join(dir, "report.json")); steps != w.steps {
		b.Fatalf("the report tells of %d steps, the job made %d", steps, w.steps)
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wall/n, "s")
	b.ReportMetric(cpu/n, "cpu-s")
	b.ReportMetric(float64(peak)/(1<<20), "MiB")
	b.ReportMetric(float64(w.records)*n/cpu/1e6, "Mrecords/cpu-s")
	b.ReportMetric(float64(w.records)/1e6, "Mrecords")
	b.ReportMetric(float64(w.steps)/1e6, "Msteps")
}

// stepsOf adds up the steps of all ranks that a report tells of.
func stepsOf(b *testing.B, path string) (sum int) {
	b.Helper()
	var report struct{ Ranks []struct{ Steps int } }
	readJSON(b, path, &report)
	for _, k := range report.Ranks {
		sum += k.Steps
	}
	return sum
}

func readJSON(b *testing.B, path string, into any) {
	b.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// roomy returns a new folder with that much space: in memory where it fits, for a benchmark measures no disk.
func roomy(b *testing.B, bytes uint64) string {
	b.Helper()
	var fs syscall.Statfs_t
	const memory = "/dev/shm"
	if syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) > 2*bytes {
		dir, err := os.MkdirTemp(memory, "datawait-cost-")
		if err == nil {
			b.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	return b.TempDir()
}

// binary makes the binary as `make build` does.
func binary(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "datawait")
	if output, err := exec.Command("go", "build", "-trimpath", "-o", path, "../..").CombinedOutput(); err != nil {
		b.Fatalf("building datawait: %v\n%s", err, output)
	}
	return path
}

// usage is what a finished command took.
type usage struct {
	wall, cpu float64 // seconds
	peak      int64   // bytes resident
}

// measure runs a command to its end.
func measure(b *testing.B, c *exec.Cmd) usage {
	b.Helper()
	began := time.Now()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	most := make(chan int64)
	go func() { most <- watchPeak(c.Process.Pid, ended) }()
	err := c.Wait()
	u := usage{wall: time.Since(began).Seconds()}
	close(ended)
	u.peak = <-most
	if err != nil {
		b.Fatal(err)
	}
	u.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return u
}

// watchPeak follows VmHWM, the most a process ever had resident (proc_pid_status(5)). rusage would do, but it counts what the
// process held before it became another program, which is this test.
func watchPeak(pid int, ended <-chan struct{}) (most int64) {
	for {
		select {
		case <-ended:
			return most
		case <-time.After(5 * time.Millisecond):
			most = max(most, peak(pid))
		}
	}
}

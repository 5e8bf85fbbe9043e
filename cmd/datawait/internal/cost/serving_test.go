package cost

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// BenchmarkAgentServing watches `datawait serve` over eight A100s, whose counters DCGM's real binding reads from the stand-in engine in
// windows of a second, alone and with the job of [BenchmarkAgent] at 5 steps/s, whose processes write their rings into its spool. Every
// 15 s somebody scrapes it, as Prometheus does. The bars are 0.7 % of one core alone, 1 % with the job, and 60 MiB with the child, flat.
//
// Nothing is taken off. The stand-in computes its samples in the child, which a host engine does elsewhere; what the library's own
// transport costs is not in it. The engine is asked more often in the first two minutes (child.Serve) than in the weeks that follow.
//
// A hundred scrapes in a row, after what is measured else, tell how long one takes.
func BenchmarkAgentServing(b *testing.B) {
	for _, c := range []struct {
		name string
		job  bool
	}{{"gpus", false}, {"job", true}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				watchServing(b, c.job)
			}
		})
	}
}

func watchServing(b *testing.B, job bool) {
	dir := roomy(b, 1<<30)
	engine, err := net.Listen("unix", filepath.Join(dir, "engine")) // that somebody listens is all the stand-in needs
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	var scenario strings.Builder
	for id := range jobRanks {
		scenario.WriteString(standin.A100(id, "sm=0.5 tensor=0.25 resident=1"))
	}
	scenario.WriteString(standin.Groups)
	at := freeAddress(b)
	spool := filepath.Join(dir, "spool")
	said := &bytes.Buffer{}
	agent := exec.Command(binary(b), "serve", "--gpu", "dcgm="+filepath.Join(dir, "engine"), "--listen", at, "--spool", spool,
		"--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "gpu.sock"))
	agent.Env = append(os.Environ(), standin.Environment(b, scenario.String())...)
	agent.Stderr = said
	if err := agent.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { agent.Process.Kill(); agent.Wait() }()
	if job {
		startJob(b, spool)
	}
	time.Sleep(20 * time.Second) // everything has started, the engine was asked twice, and the first seconds' memory is gone
	begun := scrape(b, at)
	stop, scraped := make(chan struct{}), make(chan []time.Duration)
	go func() { scraped <- scrapeAgain(at, stop) }()
	began := time.Now()
	u, err := follow(agent.Process.Pid, minutes(b))
	wall := time.Since(began).Seconds()
	close(stop)
	took := <-scraped
	if err != nil {
		b.Fatalf("%v\n%s", err, said)
	}
	ended := scrape(b, at)
	checkServing(b, job, begun, ended, wall)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*u.cores, "core-%")
	b.ReportMetric(100*u.child, "child-core-%")
	b.ReportMetric(u.most/(1<<20), "MiB")
	b.ReportMetric(u.childMost/(1<<20), "child-MiB")
	b.ReportMetric(u.growth/(1<<20), "MiB-grown")
	b.ReportMetric(float64(len(ended)), "series")
	b.ReportMetric(median(seconds(took))*1e3, "scrape-ms")
	b.ReportMetric(percentile99(b, at)*1e3, "scrape-p99-ms")
	if b.Failed() {
		b.Log(said)
	}
}

// startJob starts the launcher, whose children end with it.
func startJob(b *testing.B, spool string) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the agent makes the folder
		if _, err := os.Stat(spool); err == nil {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal("the agent made no spool")
		}
	}
	launcher := exec.Command(self)
	launcher.Env = append(os.Environ(), partVariable+"=launcher", paceVariable+"="+strconv.Itoa(servedPace), realVariable+"=1", "DATAWAIT_SPOOL="+spool)
	launcher.Stderr = os.Stderr
	if err := launcher.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { launcher.Process.Kill(); launcher.Wait() })
}

const servedPace = 5 // steps per second

func freeAddress(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// checkServing makes sure that the agent did what it is measured for: between two scrapes so many seconds apart it counted every rank's steps,
// and time of every GPU.
func checkServing(b *testing.B, job bool, before, after page, wall float64) {
	b.Helper()
	grown := func(metric string) (series int, least float64) {
		for name, v := range after {
			if strings.HasPrefix(name, metric+"{") {
				if series++; series == 1 || v-before[name] < least {
					least = v - before[name]
				}
			}
		}
		return series, least
	}
	up := 0
	for name, v := range after {
		if strings.HasPrefix(name, "datawait_gpu_last_window_timestamp_seconds{") && time.Since(time.Unix(int64(v), 0)) < 30*time.Second {
			up++
		}
	}
	if up != jobRanks {
		b.Errorf("%d GPUs are counted, not %d", up, jobRanks)
	}
	if !job {
		return
	}
	for metric, least := range map[string]float64{"datawait_steps_total": 0.8 * wall * servedPace, "datawait_worker_batches_total": 0.8 * wall * servedPace,
		"datawait_gpu_covered_seconds_total": 0.8*wall - 20} {
		if n, got := grown(metric); n != jobRanks || got < least {
			b.Errorf("%d series of %s grew by at least %g in %.0f s, not %d by %g", n, metric, got, wall, jobRanks, least)
		}
	}
}

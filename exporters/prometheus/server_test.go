package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
)

// server is a real Prometheus that scrapes a target every second.
type server struct {
	t   *testing.T
	url string
}

func startServer(t *testing.T, target string) *server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("prometheus is missing: make setup fetches it")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: datawait, static_configs: [{targets: ['%s']}]}]\n", strings.TrimPrefix(target, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := free(t)
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address,
		"--enable-feature=native-histograms", "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	return &server{t, "http://" + address}
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answer is what a query returned.
type answer struct {
	Metric map[string]string
	Value  [2]any
}

func (a answer) value() float64 {
	v, _ := strconv.ParseFloat(fmt.Sprint(a.Value[1]), 64)
	return v
}

// ask runs a query until it returns something.
func (s *server) ask(query string) []answer {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		r, err := http.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			continue
		}
		var body struct {
			Error string
			Data  struct{ Result []answer }
		}
		err = json.NewDecoder(r.Body).Decode(&body)
		r.Body.Close()
		if body.Error != "" {
			s.t.Fatal(query, ": ", body.Error)
		}
		if err == nil && len(body.Data.Result) > 0 {
			return body.Data.Result
		}
	}
	s.t.Fatal(query, ": nothing")
	return nil
}

// A real server takes every series with its labels unrenamed, sees all that a short job counted, and reads step times as native
// histograms where they are asked for.
func TestRealServer(t *testing.T) {
	x := full(t, Options{ScrapeInterval: time.Second, NativeHistograms: true})
	s := node(2, 8, 100)
	began := time.Now()
	x.collector.o.Snapshot = func() *live.Snapshot {
		now := s
		now.At = uint64(time.Since(began)) + 100*second
		return &now
	}
	target := httptest.NewServer(x.collector.Handler())
	defer target.Close()
	prometheus := startServer(t, target.URL)
	// The job did all its steps before it was scraped first. A server that saw its counter only as it ended would call that no increase.
	steps := prometheus.ask(`increase(datawait_steps_total{rank="0"}[1m]) > 0`)
	if got := steps[0].value(); got < 250 || steps[0].Metric["training_job"] != "resnet50-imagenet-0" {
		t.Errorf("increase %v of %v, the job made 500 steps", got, steps[0].Metric)
	}
	if got := prometheus.ask(`count(count by (__name__) ({__name__=~"datawait_.+"}))`)[0].value(); int(got) != len(names) {
		t.Errorf("%v names arrived, of %d", got, len(names))
	}
	if got := prometheus.ask(`count({exported_job=~".+"}) or vector(0)`)[0].value(); got != 0 {
		t.Errorf("%v series have a label renamed", got)
	}
	// 0.15 s to 0.213 s each: the classic buckets know 0.125 to 0.25 only.
	if got := prometheus.ask(`histogram_quantile(0.5, datawait_step_duration_seconds)`)[0].value(); got < 0.16 || got > 0.2 {
		t.Errorf("the median step takes %v s", got)
	}
	if got := prometheus.ask(`sum without (account) (datawait_gpu_account_seconds_total) - datawait_gpu_allocated_seconds_total`); got[0].value() > 1e-9 || len(got) != 2 {
		t.Errorf("the accounts of %d GPUs are off by %v s", len(got), got[0].value())
	}
}

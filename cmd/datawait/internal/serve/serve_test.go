package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/gpuwatch"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/cmd/datawait/internal/shelf"
	"github.com/datawait/datawait/cmd/datawait/internal/web"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// TestMain plays what an agent starts of itself: a source of GPU counters, as ill as the test wants it, and reports.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == gpuwatch.Command:
		if os.Getenv("GPU_CHILD") == "hangs" {
			time.Sleep(time.Hour)
		}
		fmt.Fprintln(os.Stderr, "the driver is gone")
		os.Exit(7)
	case len(os.Args) > 1 && os.Args[1] == "report":
		fmt.Printf("<title>%s</title>", os.Args[len(os.Args)-1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// log is what an agent says.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// running is an agent that runs, and a job that writes a ring.
type running struct {
	*testing.T
	options Options
	log     *log
	stop    context.CancelFunc
	ended   chan error
	at      string
}

func options(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	return Options{Listen: "127.0.0.1:0", Spool: filepath.Join(dir, "spool"), State: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "gpu.sock"),
		GPU: gpusource.Choice{Kind: gpusource.None}, ScrapeInterval: time.Second, Forget: time.Minute, Version: "test"}
}

func start(t *testing.T, o Options) *running {
	t.Helper()
	r := &running{T: t, log: &log{}, ended: make(chan error, 1)}
	o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	r.options = o
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log)
		}
	})
	r.at = r.address("listening")
	return r
}

var addressOf = regexp.MustCompile(`address=(\S+)`)

// address waits until the agent says that it listens.
func (r *running) address(message string) (at string) {
	r.Helper()
	r.until(message, func() bool {
		for line := range strings.Lines(r.log.String()) {
			if m := addressOf.FindStringSubmatch(line); m != nil && strings.Contains(line, message) {
				at = m[1]
			}
		}
		return at != ""
	})
	return at
}

func (r *running) until(what string, is func() bool) {
	r.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	r.Fatalf("it did not happen: %s\n%s", what, r.log)
}

func (r *running) get(path string) (status int, body string) {
	resp, err := http.Get("http://" + r.at + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(b)
}

func (r *running) shows(line string) func() bool {
	return func() bool { _, page := r.get("/metrics"); return strings.Contains(page, line) }
}

// end stops the agent as SIGTERM does, and returns how long that took.
func (r *running) end() time.Duration {
	r.Helper()
	began := time.Now()
	r.stop()
	select {
	case err := <-r.ended:
		if err != nil {
			r.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		r.Fatal("it does not end")
	}
	return time.Since(began)
}

// ring is what this process writes as a training job.
func ring(t *testing.T, spool string) *recording.RingWriter {
	t.Helper()
	pid := os.Getpid()
	gpu := "GPU-a"
	d := recording.Declaration{Producer: recording.ProducerMain, PID: pid, StartTicks: run.StartTicks(pid), Opened: clock.Mono(), Job: "bert", GPUUUID: &gpu}
	w, err := recording.CreateRing(filepath.Join(spool, recording.RingName(pid, d.StartTicks)), 1024, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Abandon() })
	return w
}

func steps(t *testing.T, w *recording.RingWriter, n int) {
	t.Helper()
	for range n {
		now := clock.Mono()
		for _, r := range []recording.Record{recording.Fetch{Enter: now - 2000, Exit: now - 1000, CPU: recording.Unknown64}.Encode(), recording.Step{Begin: recording.Unknown64, End: now}.Encode()} {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const stepsOf = `datawait_steps_total{rank="",training_job="bert",training_namespace="",training_pod=""} `

// An agent that is told to stop keeps all that was written until then, waits for nobody, and leaves nothing behind.
func TestTheEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	r := start(t, options(t))
	w := ring(t, r.options.Spool)
	steps(t, w, 10)
	r.until("the job is seen", r.shows(stepsOf+"10\n"))
	for range 3 { // clients that say or read nothing
		for network, address := range map[string]string{"tcp": r.at, "unix": r.options.Socket} {
			conn, err := net.Dial(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
	}
	steps(t, w, 7)
	if took := r.end(); took > 10*time.Second {
		t.Errorf("the end took %v", took)
	}
	var state live.State
	kept, err := os.ReadFile(filepath.Join(r.options.State, stateName))
	if err == nil {
		err = json.Unmarshal(kept, &state)
	}
	if err != nil || len(state.Ranks) != 1 || state.Ranks[0].Steps != 17 {
		t.Errorf("%v, %+v", err, state.Ranks)
	}
	dir, err := shelf.Find(r.options.State, "bert")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Open(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(r.options.Socket); err == nil {
		t.Error("the socket is left behind")
	}
	r.until("no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })

	again := start(t, r.options)
	steps(t, w, 3)
	again.until("it goes on", again.shows(stepsOf+"20\n"))
	again.end()
}

func TestTwoAgentsDoNotShareAFolder(t *testing.T) {
	r := start(t, options(t))
	other := r.options
	other.Spool, other.Socket = t.TempDir(), "-"
	if err := Run(context.Background(), other); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
	if status, _ := r.get("/healthz"); status != http.StatusOK {
		t.Errorf("the first one says %d", status)
	}
	r.end()
	start(t, r.options).end()
}

func TestAPortThatIsInUse(t *testing.T) {
	r := start(t, options(t))
	o := options(t)
	o.Listen, o.Log = r.at, slog.New(slog.DiscardHandler)
	if err := Run(context.Background(), o); !errors.Is(err, web.ErrPortInUse) {
		t.Errorf("%v", err)
	}
	r.end()
	start(t, o2(o)).end() // and its folders are free again
}

func o2(o Options) Options { o.Listen = "127.0.0.1:0"; return o }

// A source that is ill is said to be, with its reason. What rings tell goes on, and nothing is called idle for it.
func TestAnIllSourceOfCounters(t *testing.T) {
	for ill, says := range map[string]string{"hangs": "gpu: the GPU child has told nothing", "dies": "gpu: .*the driver is gone"} {
		t.Run(ill, func(t *testing.T) {
			t.Setenv("GPU_CHILD", ill)
			o := options(t)
			o.GPU = gpusource.Choice{Kind: gpusource.DCGM, Address: "127.0.0.1:1"}
			r := start(t, o)
			w := ring(t, o.Spool)
			for n := range 3 {
				steps(t, w, 10)
				r.until("steps go on", r.shows(stepsOf+fmt.Sprint(10*(n+1), "\n")))
			}
			wanted := regexp.MustCompile(says)
			r.until("readyz says why", func() bool {
				status, body := r.get("/readyz")
				return status == http.StatusServiceUnavailable && wanted.MatchString(body)
			})
			if status, _ := r.get("/healthz"); status != http.StatusOK {
				t.Errorf("healthz says %d: a GPU that is gone does not come back by a restart of the agent", status)
			}
			_, page := r.get("/metrics")
			if !strings.Contains(page, "datawait_source_up{source=\"gpu\"} 0\n") {
				t.Error("the source is said to be up")
			}
			for line := range strings.Lines(page) {
				if strings.Contains(line, `account="idle_held"`) || strings.Contains(line, `account="not_held"`) || strings.HasPrefix(line, "datawait_gpu_sm_seen") {
					if !strings.HasSuffix(line, " 0\n") {
						t.Error("of a GPU that nobody saw: ", line)
					}
				}
			}
			if took := r.end(); took > 10*time.Second {
				t.Errorf("the end took %v", took)
			}
		})
	}
}

// systemd is told when the agent answers, that its loop comes round, and that it ends.
func TestTheServiceManagerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	r := start(t, options(t))
	heard := func(want string) {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		for {
			b := make([]byte, 100)
			n, err := conn.Read(b)
			if err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			if string(b[:n]) == want {
				return
			}
		}
	}
	heard("READY=1")
	heard("WATCHDOG=1")
	heard("WATCHDOG=1")
	r.stop()
	heard("STOPPING=1")
	r.end()
}

func TestReportsAreForWhoeverNamesHimself(t *testing.T) {
	o := options(t)
	o.ReportListen = "127.0.0.1:0"
	if err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "--report-web-config") {
		t.Fatalf("reports for everybody: %v", err)
	}
	o.ReportConfig = filepath.Join(t.TempDir(), "web.yml")
	// The hash is of "fakepassword", of exporter-toolkit's own tests.
	if err := os.WriteFile(o.ReportConfig, []byte("basic_auth_users:\n  me: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, o)
	at := r.address("reports on request")
	w := ring(t, o.Spool)
	steps(t, w, 10)
	r.until("the job is seen", r.shows(stepsOf+"10\n"))
	ask := func(path, password string) (int, string) {
		req, err := http.NewRequest(http.MethodGet, "http://"+at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			req.SetBasicAuth("me", password)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	for _, c := range []struct {
		path, password string
		status         int
		says           string
	}{
		{"/", "", 401, ""},
		{"/report?job=bert", "", 401, ""},
		{"/report?job=bert", "wrong", 401, ""},
		{"/", "fakepassword", 200, `href="/report?job=bert"`},
		{"/report?job=bert", "fakepassword", 200, "<title>" + filepath.Join(o.State, shelf.Recordings)},
		{"/report?job=nobody", "fakepassword", 404, "no such job"},
		{"/report?job=../../etc", "fakepassword", 404, "no such job"},
		{"/metrics", "fakepassword", 404, ""},
	} {
		if status, body := ask(c.path, c.password); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s with %q: %d %s", c.path, c.password, status, body)
		}
	}
	r.end()
}

package prometheus

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/unit"
)

// full is a target that shows every series there is.
func full(t testing.TB, o Options) *target {
	x := newTarget(t, o)
	s := node(2, 8, 100)
	x.snapshot = &s
	x.agent.Sources = []Source{{Name: "gpu", Up: true, Took: unit.Some(0.002), Runs: 100, Errors: 1}, {Name: "spool"}}
	x.agent.Spools = Spools{Followed: 16, Refused: 1}
	x.agent.Processes = []Process{{Name: "agent", CPU: unit.Some(1.5), Resident: unit.Some(uint64(40 << 20))}}
	return x
}

// get asks for the metrics as a server does.
func get(t testing.TB, h http.Handler, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Both linters of Prometheus find nothing: names, units, types and helps are as its guide asks.
func TestLint(t *testing.T) {
	h := full(t, Options{}).collector.Handler()
	text := get(t, h).Body.String()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: make setup fetches it")
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// What is gathered without a registry is what one gathers, which holds every series to its descriptor and to all others.
func TestGatherIsWhatARegistryGathers(t *testing.T) {
	x := full(t, Options{NativeHistograms: true})
	own, err := x.collector.Gather()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := x.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(own) != len(theirs) {
		t.Fatalf("%d families, a registry gathers %d", len(own), len(theirs))
	}
	for i, f := range own {
		g := theirs[i]
		if f.GetName() != g.GetName() || f.GetHelp() != g.GetHelp() || f.GetType() != g.GetType() || len(f.Metric) != len(g.Metric) {
			t.Errorf("%s (%v), %d series; a registry gathers %s (%v), %d", f.GetName(), f.GetType(), len(f.Metric), g.GetName(), g.GetType(), len(g.Metric))
		}
	}
	if a, b := flat(own), flat(theirs); !maps.Equal(a, b) {
		t.Error("the series are not the same")
	}
}

// A metric that is in a table and never shown, or shown without being in a table, is in error.
func TestEveryMetricIsShown(t *testing.T) {
	got := full(t, Options{}).scrape()
	shown := map[string]bool{}
	for s := range got {
		name, _, _ := strings.Cut(s, "{")
		for _, suffix := range []string{"_count", "_sum", "_bucket"} {
			if strings.HasPrefix(name, "datawait_step_duration") {
				name = strings.TrimSuffix(name, suffix)
			}
		}
		shown[name] = true
	}
	listed := 0
	for _, s := range sections() {
		for _, m := range s.metrics {
			listed++
			if !shown[m.name] {
				t.Errorf("%s is not shown", m.name)
			}
			for _, label := range m.labels {
				if label == "job" || label == "instance" {
					t.Errorf("%s has the label %s, which Prometheus would rename", m.name, label)
				}
			}
		}
	}
	if len(shown) != listed {
		t.Errorf("%d names are shown, %d are listed", len(shown), listed)
	}
}

// A server gets the format it asks for.
func TestFormats(t *testing.T) {
	h := full(t, Options{NativeHistograms: true}).collector.Handler()
	for _, c := range []struct{ accept, contentType, holds string }{
		{"", "text/plain; version=0.0.4", "# TYPE datawait_steps_total counter\n"},
		{"application/openmetrics-text;version=1.0.0", "application/openmetrics-text; version=1.0.0", "# TYPE datawait_steps counter\n"},
	} {
		w := get(t, h, "Accept", c.accept)
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), c.contentType) || !strings.Contains(body, c.holds) {
			t.Errorf("%q: %d, %s:\n%.300s", c.accept, w.Code, w.Header().Get("Content-Type"), body)
		}
		if !strings.Contains(body, `datawait_step_duration_seconds_bucket{`) {
			t.Errorf("%q: no classic buckets in text", c.accept)
		}
		if strings.HasPrefix(c.accept, "application/openmetrics") != strings.HasSuffix(body, "# EOF\n") {
			t.Errorf("%q: ends with %q", c.accept, body[len(body)-20:])
		}
	}
}

// An answer is packed for who asks for that, and is the same.
func TestCompressed(t *testing.T) {
	h := full(t, Options{}).collector.Handler()
	w := get(t, h, "Accept-Encoding", "gzip", "Accept", accept)
	r, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal(w.Header(), err)
	}
	packed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	plain := get(t, h, "Accept", accept)
	if plain.Header().Get("Content-Encoding") != "" {
		t.Error("who does not ask for it gets it packed")
	}
	own := func(page string) string { return page[:strings.Index(page, "# HELP go_")] } // the runtime's numbers move
	if got, want := own(string(packed)), own(plain.Body.String()); got != want {
		t.Errorf("%d bytes unpacked, %d plain", len(got), len(want))
	}
}

// Who waits too long is told so; the agent does not hold the connection.
func TestScrapeTimesOut(t *testing.T) {
	x := full(t, Options{})
	hang := make(chan struct{})
	defer close(hang)
	x.collector.o.Snapshot = func() *live.Snapshot { <-hang; return nil }
	if w := get(t, x.collector.handler(10*time.Millisecond)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "within 10ms") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/exporters/prometheus"
	"github.com/datawait/datawait/probe/unit"
)

// The agent is alive while its loop comes round, and ready while everything it was told to look at delivers.
func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		change          func(*served)
		healthy, ready  int
		says, saysReady string
	}{
		"all is well":      {func(*served) {}, 200, 200, "ok\n", "ok\n"},
		"not ticked yet":   {func(s *served) { s.ticked.Store(0) }, 200, 200, "ok\n", "ok\n"},
		"nothing seen yet": {func(s *served) { s.snapshot = nil }, 200, 503, "ok\n", "nothing was observed yet: the agent has just started\n"},
		"a source is dead": {func(s *served) {
			s.agent.Sources[0] = prometheus.Source{Name: "gpu", Why: "the host engine\ndoes not answer; start nvidia-dcgm"}
		}, 200, 503, "ok\n", "gpu: the host engine does not answer; start nvidia-dcgm\n"},
		"two are": {func(s *served) {
			s.agent.Sources = []prometheus.Source{{Name: "gpu", Why: "gone"}, {Name: "spool"}}
		}, 200, 503, "ok\n", "gpu: gone\nspool: it does not deliver, and does not say why\n"},
		"the loop hangs": {func(s *served) { s.ticked.Store(time.Now().Add(-61500 * time.Millisecond).UnixNano()) }, 503, 503,
			"the agent's loop has not come round for 61 s; it should every second\n", "the agent's loop has not come round for 61 s; it should every second\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(s *served, _ *Config) { c.change(s) })
			if r, body := s.get(t, "/healthz"); r.StatusCode != c.healthy || body != c.says {
				t.Errorf("/healthz: %d, %q", r.StatusCode, body)
			}
			if r, body := s.get(t, "/readyz"); r.StatusCode != c.ready || body != c.saysReady {
				t.Errorf("/readyz: %d, %q", r.StatusCode, body)
			}
		})
	}
}

// A loop that never came round is dead once it should have.
func TestNeverTicked(t *testing.T) {
	c := Config{Ticked: func() time.Time { return time.Time{} }, Within: 30 * time.Second}
	now := time.Now()
	if got := c.dead(now.Add(-29*time.Second), now); len(got) > 0 {
		t.Errorf("after 29 s: %v", got)
	}
	if got := c.dead(now.Add(-31*time.Second), now); len(got) == 0 {
		t.Error("after 31 s it is alive")
	}
}

// node is what a person finds on the first page: a job that waits, one with a hostile name, a GPU, an emulated one.
func node() *live.Snapshot {
	a, b := live.Tenant{Job: "resnet", Namespace: "research", Pod: "resnet-0"}, live.Tenant{Job: `<script>alert(1)</script>`}
	var books ledger.Totals
	books.NS[ledger.Compute], books.NS[ledger.IdleHeld], books.NS[ledger.NotHeld], books.Allocated = 700, 200, 100, 1000
	return &live.Snapshot{At: 1,
		Jobs: []live.Job{{Tenant: b}, {Tenant: a, Running: true}},
		Ranks: []live.Rank{{Tenant: a, Rank: unit.Some(0), Running: true, Steps: 100, Training: 1000, Wait: 500, WaitClocked: 400, Exposed: 100},
			{Tenant: a, Rank: unit.Some(1), Steps: 50, Training: 1000, Wait: 100}, {Tenant: b}},
		GPUs: []live.GPU{{UUID: "GPU-1", Name: "A100", Source: "dcgm", Grade: "A"}, {UUID: "GPU-2", Name: "A100", Source: "emulated", Grade: "C", Emulated: true, Assigned: unit.Some(false)},
			{UUID: "GPU-3", Assigned: unit.Some(true)}, {UUID: "GPU-4"}},
		Holders:   []live.Holder{{GPU: "GPU-1", Tenant: a}, {GPU: "GPU-4", Tenant: a}, {GPU: "GPU-4", Tenant: b}},
		Tenancies: []live.Tenancy{{GPU: "GPU-1", Tenant: a, Books: books, Activity: live.Activity{SMActive: 30, SMSeen: 120}}}}
}

func TestStatus(t *testing.T) {
	s := statusOf(node(), prometheus.Agent{Sources: []prometheus.Source{{Name: "gpu", Up: true}, {Name: "holders", Why: "no kubelet"}}}, nil)
	if got, want := s.Jobs[0], (jobRow{Name: "resnet", Where: "research/resnet-0", Ranks: "1 of 2", Steps: "150", WaitShare: "30 %", Exposed: "25 %", waited: 600}); got != want {
		t.Errorf("the job that waits: %+v, want %+v", got, want)
	}
	if got := s.Jobs[1]; got.WaitShare != "–" || got.Exposed != "–" || got.Ranks != "0 of 1" {
		t.Errorf("the job that has not begun: %+v", got)
	}
	if got, want := s.GPUs[0], (gpuRow{"A100", "GPU-1", "dcgm, grade A", "resnet", "25 %", "30 %"}); got != want {
		t.Errorf("GPU 1: %+v, want %+v", got, want)
	}
	if got, want := s.GPUs[1], (gpuRow{"A100", "GPU-2", "emulated, grade C, emulated", "nobody", "–", "–"}); got != want {
		t.Errorf("GPU 2: %+v, want %+v", got, want)
	}
	for i, want := range map[int]string{2: "somebody without a name", 3: "2 tenants"} {
		if s.GPUs[i].Holder != want {
			t.Errorf("GPU %d: %q, want %q", i+1, s.GPUs[i].Holder, want)
		}
	}
	if s.Sources[0].State != "delivers" || s.Sources[1].State != "fails" || s.Sources[1].Why != "no kubelet" {
		t.Errorf("sources: %+v", s.Sources)
	}
}

// Thousands of jobs do not make a page that no browser shows.
func TestStatusIsBounded(t *testing.T) {
	var n live.Snapshot
	for range 5000 {
		n.Jobs, n.GPUs = append(n.Jobs, live.Job{}), append(n.GPUs, live.GPU{})
	}
	if s := statusOf(&n, prometheus.Agent{}, nil); len(s.Jobs) != rowsOfPage || s.MoreJobs != 5000-rowsOfPage || len(s.GPUs) != rowsOfPage || s.MoreGPUs != 5000-rowsOfPage {
		t.Errorf("%d and %d more jobs, %d and %d more GPUs", len(s.Jobs), s.MoreJobs, len(s.GPUs), s.MoreGPUs)
	}
}

func TestFirstPage(t *testing.T) {
	s := start(t, func(s *served, _ *Config) {
		s.snapshot = node()
		s.agent.Sources[0] = prometheus.Source{Name: "gpu", Why: "the host engine does not answer <now>"}
	})
	r, body := s.get(t, "/")
	if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%d, %s", r.StatusCode, r.Header.Get("Content-Type"))
	}
	for _, want := range []string{"1.2.3", `href="/metrics"`, `href="/readyz"`, `href="/healthz"`, "resnet-0", "30 %", "grade C, emulated", "Not ready", "the host engine does not answer &lt;now&gt;",
		"&lt;script&gt;alert(1)&lt;/script&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "debug/pprof", "http://", "https://", "ZgotmplZ"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

func TestFirstPageOfAnAgentThatJustStarted(t *testing.T) {
	s := start(t, func(s *served, _ *Config) { s.snapshot, s.agent.Sources = nil, nil })
	if _, body := s.get(t, "/"); !strings.Contains(body, "No training with the hook was seen.") || !strings.Contains(body, "No GPU is known.") {
		t.Errorf("the page:\n%s", body)
	}
}

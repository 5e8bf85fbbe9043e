package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/datawait/datawait/exporters/prometheus"
)

// pagesAtOnce is how many first pages are drawn at once; nobody needs more.
const pagesAtOnce = 4

// handler answers every path. started stands for the loop's last round until it has come round once.
func (c Config) handler(started time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, c.dead(started, time.Now())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { say(w, c.problems(started, time.Now())) })
	mux.Handle("GET /{$}", prometheus.AtMost(pagesAtOnce, http.HandlerFunc(c.landing)))
	return mux
}

// guarded adds headers by which a browser does no more with an answer than show it: names in it come from jobs.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"X-Content-Type-Options":  "nosniff",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "no-referrer",
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			"Cache-Control":           "no-store",
		} {
			if w.Header().Get(name) == "" { // --web-config may set its own
				w.Header().Set(name, value)
			}
		}
		h.ServeHTTP(w, r)
	})
}

// say answers ok, or with every problem in a line of its own.
func say(w http.ResponseWriter, problems []string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(problems) == 0 {
		io.WriteString(w, "ok\n")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, p := range problems {
		io.WriteString(w, line(p)+"\n")
	}
}

// line makes one line of a text.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

// dead says that the agent's loop hangs. Whoever watches an agent starts it again for that, and for nothing else: a GPU that is
// gone does not come back by it.
func (c Config) dead(started, now time.Time) []string {
	last := c.Ticked()
	if last.IsZero() {
		last = started
	}
	if age := now.Sub(last); age > c.Within {
		return []string{fmt.Sprintf("the agent's loop has not come round for %d s; it should every second", int(age.Seconds()))}
	}
	return nil
}

// problems lists why an agent does not do what it was told to: each source that does not deliver, and a loop that hangs.
func (c Config) problems(started, now time.Time) []string {
	all := c.dead(started, now)
	if c.Snapshot() == nil {
		all = append(all, "nothing was observed yet: the agent has just started")
	}
	for _, s := range c.Agent().Sources {
		if !s.Up {
			why := s.Why
			if why == "" {
				why = "it does not deliver, and does not say why"
			}
			all = append(all, fmt.Sprintf("%s: %s", s.Name, why))
		}
	}
	return all
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/shelf"
)

// reporter makes reports of what is on the shelf, one at a time and each in a process of its own: what it costs is not the agent's.
type reporter struct {
	state string
	log   *slog.Logger
	busy  chan struct{}
}

// reportWithin is how long a report may take: less than an answer may.
const reportWithin = 25 * time.Second

var jobsPage = template.Must(template.New("jobs").Parse(`<!doctype html><meta charset="utf-8"><title>datawait: recorded jobs</title>
<h1>Recorded jobs</h1>
<ul>{{range .}}<li><a href="/report?job={{.}}">{{.}}</a></li>{{else}}<li>none</li>{{end}}</ul>
`))

// list shows which jobs are recorded.
func (r *reporter) list(w http.ResponseWriter, _ *http.Request) {
	jobs, err := shelf.Jobs(filepath.Join(r.state, shelf.Recordings))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var names []string
	for _, j := range jobs {
		if len(j.Slices) > 0 {
			names = append(names, j.String())
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = jobsPage.Execute(w, names) // the reader left
}

// report makes the page of one job.
func (r *reporter) report(w http.ResponseWriter, q *http.Request) {
	dir, err := shelf.Find(r.state, q.URL.Query().Get("job"))
	if err != nil {
		status := http.StatusInternalServerError
		if errors.Is(err, shelf.ErrNoJob) {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
		return
	}
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-q.Context().Done():
		return
	}
	page, err := r.page(q.Context(), dir)
	if err != nil {
		r.log.Warn("a report could not be made", "recording", dir, "reason", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page) // the reader left
}

func (r *reporter) page(ctx context.Context, dir string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, self, "report", "--format", "html", "-o", "-", dir)
	cmd.Stderr = &said
	page, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("making the report: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return page, nil
}

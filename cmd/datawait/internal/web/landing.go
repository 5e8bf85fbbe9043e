package web

import (
	_ "embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

//go:embed status.html
var statusText string

var statusPage = template.Must(template.New("status").Parse(statusText))

const statusCSS = `table { border-collapse: collapse; margin: 0 0 1.5em } th, td { text-align: left; padding: .2em .8em; border-bottom: 1px solid #ccc }
td { font-variant-numeric: tabular-nums } h2 { margin: 1em 0 .3em } .fails { color: #b00020 }`

// landing is exporter-toolkit's page, with what is known now.
func (c Config) landing(w http.ResponseWriter, r *http.Request) {
	agent, now := c.Agent(), time.Now()
	var body strings.Builder
	if err := statusPage.Execute(&body, statusOf(c.Snapshot(), agent, c.problems(now, now))); err != nil {
		c.Log.Error("drawing the status page", "error", err)
		http.Error(w, "the status could not be drawn", http.StatusInternalServerError)
		return
	}
	page, err := toolkit.NewLandingPage(toolkit.LandingConfig{Name: "datawait", Description: "Are these GPUs working, or waiting for data?", Version: agent.Version,
		HeaderColor: "#334", Profiling: "false", ExtraHTML: body.String(), ExtraCSS: statusCSS, Links: []toolkit.LandingLinks{
			{Address: "/metrics", Text: "Metrics", Description: "for Prometheus"},
			{Address: "/readyz", Text: "Ready", Description: "whether everything that should be observed is"},
			{Address: "/healthz", Text: "Health", Description: "whether the agent is alive"},
		}})
	if err != nil {
		c.Log.Error("drawing the first page", "error", err)
		http.Error(w, "the page could not be drawn", http.StatusInternalServerError)
		return
	}
	page.ServeHTTP(w, r)
}

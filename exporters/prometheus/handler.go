package prometheus

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// A scrape is bounded: two servers and a person scrape at once, not more; Prometheus waits 10 s for an answer
// (prometheus.io/docs/prometheus/latest/configuration/configuration, scrape_timeout).
const (
	pagesAtOnce   = 4                // being made: each takes memory for all series
	answersAtOnce = 16               // being made or sent: whoever reads slowly holds one
	scrapeTimeout = 10 * time.Second // of making one
)

// Handler answers scrapes, in the text format or OpenMetrics as the server asks, and in protobuf if it asks for native
// histograms. More of them at once than are useful are told to come again (503). Besides the collector's it shows how many
// scrapes were answered how, and the few metrics of Go's runtime that client_golang always has.
func (c *Collector) Handler() http.Handler { return c.handler(scrapeTimeout) }

func (c *Collector) handler(timeout time.Duration) http.Handler {
	registry := client.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()))
	pages := promhttp.HandlerForTransactional(all{c, registry}, promhttp.HandlerOpts{
		ErrorLog:            errorLog{c.o.Log},
		Registry:            registry,
		MaxRequestsInFlight: pagesAtOnce,
		EnableOpenMetrics:   true,
		DisableCompression:  true,
	})
	timed := http.TimeoutHandler(compressed(pages), timeout, fmt.Sprintf("the metrics were not there within %v\n", timeout))
	return promhttp.InstrumentMetricHandler(registry, AtMost(answersAtOnce, timed))
}

// all is what a collector shows and then what a registry has.
type all struct {
	collector *Collector
	registry  *client.Registry
}

func (a all) Gather() ([]*dto.MetricFamily, func(), error) {
	own, sent, err := a.collector.borrow()
	if err != nil {
		return nil, sent, err
	}
	rest, err := a.registry.Gather()
	return append(own, rest...), sent, err
}

// compressed packs an answer as fast as can be for a server that asks for that, as Prometheus does: a page is a twentieth of its
// size then. promhttp packs it harder, which takes longer than all the rest.
func compressed(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		panic(err) // the options are these
	}
	return wrap(h)
}

// AtMost tells whoever is one too many to come again.
func AtMost(n int, h http.Handler) http.Handler {
	room := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			h.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d are being answered already, try again later", n), http.StatusServiceUnavailable)
		}
	})
}

// errorLog is promhttp's logger.
type errorLog struct{ *slog.Logger }

func (l errorLog) Println(v ...any) {
	l.Error("answering a scrape", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}

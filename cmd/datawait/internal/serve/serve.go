// Package serve is datawait left running: it watches the GPUs of a machine and every job on it for weeks, and shows what it counts to
// Prometheus.
//
// It decides what happens when: what is started in which order, how often what is looked at, when counters are kept and shown, and how it
// ends. What the numbers mean is decided by analysis/live, how they are shown by exporters/prometheus, who may see them by package web,
// what is kept for reports by package shelf.
//
// It promises the jobs that nothing of it touches them: it reads rings that they write anyway, and removes those of processes that have
// ended. No test is ever run.
//
// Read [Run] and agent.go first.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/datawait/datawait/cmd/datawait/internal/web"
	exporter "github.com/datawait/datawait/exporters/prometheus"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu/served"
)

// Run watches until ctx ends, or until it cannot go on.
func Run(ctx context.Context, o Options) error {
	o = o.complete()
	if err := o.check(); err != nil {
		return err
	}
	a, err := newAgent(o)
	if err != nil {
		return err
	}
	defer a.close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	if o.Socket != "-" {
		l, err := listen(o.Socket)
		if err != nil {
			o.Log.Warn("no GPU samples are offered to others on this machine", "reason", err)
		} else {
			parts.Go(func() { a.hub.Serve(ctx, l) })
		}
	}
	parts.Go(func() { a.watch(ctx) })
	parts.Go(func() { stop(a.show(ctx)) })
	if o.ReportListen != "" {
		parts.Go(func() { stop(a.reports(ctx)) })
	}
	<-ctx.Done()
	tellSystemd(daemon.SdNotifyStopping)
	o.Log.Info("stopping")
	parts.Wait()
	err = a.keep()
	if err != nil {
		o.Log.Error("the counters could not be kept; they begin anew", "reason", err)
	}
	a.removeEnded(err)
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func listen(path string) (net.Listener, error) {
	if err := makeFor(path); err != nil {
		return nil, err
	}
	return served.Listen(path)
}

// show answers requests until ctx ends.
func (a *agent) show(ctx context.Context) error {
	collector := exporter.New(exporter.Options{Snapshot: a.snapshot.Load, Agent: a.agent, Unix: unixOf, ScrapeInterval: a.options.ScrapeInterval,
		Limit: a.options.SeriesLimit, NativeHistograms: a.options.NativeHistograms, Log: a.log})
	return web.Serve(ctx, web.Config{Listen: a.options.Listen, WebConfig: a.options.WebConfig, Metrics: collector.Handler(), Agent: a.agent,
		Snapshot: a.snapshot.Load, Ticked: a.ticked, Log: a.log, Listening: func(at net.Addr) {
			a.log.Info("listening", "address", at.String(), "spool", a.options.Spool, "state", a.options.State, "gpu", a.options.GPU.String())
			tellSystemd(daemon.SdNotifyReady)
		}})
}

// unixOf returns a moment of CLOCK_MONOTONIC as seconds since 1970, by the clock as it is set now.
func unixOf(mono uint64) float64 {
	m, real := clock.Pair()
	return float64(int64(real)-(int64(m)-int64(mono))) / 1e9
}

// reports makes reports for whoever may ask, until ctx ends.
func (a *agent) reports(ctx context.Context) error {
	h := &reporter{state: a.options.State, log: a.log, busy: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.list)
	mux.HandleFunc("GET /report", h.report)
	err := web.Serve(ctx, web.Config{Listen: a.options.ReportListen, WebConfig: a.options.ReportConfig, Handler: mux, Log: a.log,
		Listening: func(at net.Addr) { a.log.Info("reports on request", "address", at.String()) }})
	if err != nil {
		return fmt.Errorf("making reports on request: %w", err)
	}
	return nil
}

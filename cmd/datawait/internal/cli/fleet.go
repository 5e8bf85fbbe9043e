package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/cmd/datawait/internal/gate"
	"github.com/datawait/datawait/cmd/datawait/internal/progress"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/survey"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	"github.com/datawait/datawait/probe/promapi"
	reporting "github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/terminal"
)

const fleetLong = `fleet ranks the jobs of a cluster by the GPU-hours they lost to waiting for data and to idle allocation, and sets a window of
time beside the one before it. It asks a server that speaks Prometheus' HTTP API: Prometheus, Thanos, Mimir or VictoriaMetrics, which
scrapes ` + "`datawait serve`" + ` on the GPU nodes. Of GPUs where no such agent runs it reads the series of a dcgm-exporter: what was
allocated and how much it worked, but not whether it waited.

Secrets are read from files or from the environment, never from the command line.`

const fleetExample = `  datawait fleet --prometheus http://prometheus:9090
  datawait fleet --prometheus http://prometheus:9090 --since 4w --gpu-hour-cost 2.50 -o fleet      files as well: HTML, Markdown, JSON
  datawait fleet --prometheus https://mimir/prometheus --tenant ml --token-file /run/secrets/token
  datawait fleet --prometheus https://thanos --http-config http.yml                               basic auth, TLS, headers: as promtool takes them
  datawait fleet --prometheus http://prometheus:9090 --format json | jq '.workloads[:3][] | {job, lost: .use.lost.gpu_hours}'
  datawait fleet --prometheus http://prometheus:9090 --fail-on waiting=20%,idle=50%`

// The environment that stands for flags.
const (
	envServer = "DATAWAIT_PROMETHEUS"
	envToken  = "DATAWAIT_PROMETHEUS_TOKEN"
)

// fleetFlags are the flags of fleet.
type fleetFlags struct {
	server              promapi.Options
	since, until        string
	format, out, failOn string
	hourCost            float64
	quiet               bool
}

func newFleet(s Streams) *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{
		Use:     "fleet --prometheus URL [flags]",
		Short:   "Rank a cluster's jobs by the GPU-hours they lose",
		Long:    fleetLong,
		Example: fleetExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 0 {
				return usage("`datawait fleet --help` has examples", "fleet takes no arguments, but was given %q", args[0])
			}
			return f.run(cmd.Context(), s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.server.URL, "prometheus", "", "`address` of the server (default $"+envServer+")")
	flags.StringVar(&f.since, "since", "7d", "`length` of the window, such as 36h, 7d or 4w; the one before it is as long")
	flags.StringVar(&f.until, "until", "", "its end, a `time` such as 2026-11-30T00:00:00Z (default now)")
	flags.StringVar(&f.server.Config, "http-config", "", "`file` that says how to connect, as promtool's --http.config.file takes it: basic_auth, authorization, tls_config, http_headers, proxy_url")
	flags.StringVar(&f.server.TokenFile, "token-file", "", "`file` with a bearer token (default $"+envToken+")")
	flags.StringVar(&f.server.CAFile, "ca-file", "", "`file` with the authorities that may vouch for the server")
	flags.StringVar(&f.server.Tenant, "tenant", "", "`name` that is sent as X-Scope-OrgID, for Mimir and the like")
	flags.DurationVar(&f.server.Timeout, "timeout", promapi.DefaultTimeout, "`time` for one question; where it is not enough, less is asked at once")
	flags.StringVar(&f.format, "format", "", "forms, a `list` of terminal, html, md, json (default terminal, and all of them with -o FOLDER)")
	flags.StringVarP(&f.out, "out", "o", "", "`file` for a single form (- for stdout), or folder for the files")
	flags.StringVar(&f.failOn, "fail-on", "", "exit with 3 where a job loses this share of its GPU-hours, a `list` such as 20%, waiting=20%, idle=50%")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	addHourCost(cmd, &f.hourCost)
	complete(cmd, "format", fleetNames()...)
	complete(cmd, "fail-on", gate.Losses()...)
	complete(cmd, "since", "1d", "7d", "4w")
	return cmd
}

func fleetNames() (names []string) {
	for _, f := range reports.Fleet {
		names = append(names, string(f))
	}
	return names
}

func (f fleetFlags) run(ctx context.Context, s Streams) error {
	formats, failOn, o, err := f.parse()
	if err != nil {
		return err
	}
	f.server.Token = os.Getenv(envToken)
	server, err := promapi.Dial(f.server)
	if err != nil {
		return &problem{err, statusUsage, fleetHint(err)}
	}
	o.Server = server.Name()
	now, before, warnings, err := f.ask(ctx, s, server, o)
	if err != nil {
		return &problem{err, statusFailed, fleetHint(err)}
	}
	o.Warnings = warnings
	result := fleet.Build(now, before, o)
	if result.Total.GPUs == 0 {
		return &problem{fmt.Errorf("%s has no series of GPUs in the %s until %s", server.Name(), f.since, o.Until.UTC().Format(time.RFC3339)), statusFailed,
			"let it scrape `datawait serve` or a dcgm-exporter; of a server with tenants, name one with --tenant"}
	}
	shown := document{name: "the fleet",
		screen: func(w io.Writer, o terminal.Options) error { return reporting.FleetTerminal(w, result, o) },
		one:    func(w io.Writer, form reporting.Format) error { return reports.OneFleet(w, result, form) },
		files: func(dir string, forms []reporting.Format) ([]string, error) {
			return reports.WriteFleet(result, dir, forms)
		}}
	if err := shown.write(s, f.out, formats); err != nil {
		return failed(err, statusFailed)
	}
	found, err := failOn.Findings(result)
	return judged(s, found, err)
}

// parse checks the flags.
func (f *fleetFlags) parse() (formats []reporting.Format, failOn gate.Fleet, o fleet.Options, err error) {
	help := "`datawait fleet --help` has examples"
	if formats, err = chooseForms("fleet", f.format, f.out, reports.ParseFleet); err != nil {
		return nil, failOn, o, err
	}
	if failOn, err = gate.ParseFleet(f.failOn); err != nil {
		return nil, failOn, o, usage("kinds of loss are "+strings.Join(gate.Losses(), ", "), "--fail-on: %w", err)
	}
	if err = checkHourCost(f.hourCost); err != nil {
		return nil, failOn, o, err
	}
	if f.server.URL == "" {
		f.server.URL = os.Getenv(envServer)
	}
	if f.server.URL == "" {
		return nil, failOn, o, usage("name it with --prometheus http://prometheus:9090, or in $"+envServer, "no server is given")
	}
	o = fleet.Options{Version: Version, HourCost: f.hourCost}
	if o.Window, o.Until, err = f.window(time.Now()); err != nil {
		return nil, failOn, o, usage(help, "%w", err)
	}
	return formats, failOn, o, nil
}

// The lengths that a window may have.
const (
	shortest = time.Hour
	longest  = 366 * 24 * time.Hour
)

// window reads its length and end. Both are whole steps, so that pieces of it fit together.
func (f *fleetFlags) window(now time.Time) (length time.Duration, until time.Time, err error) {
	d, err := model.ParseDuration(f.since)
	if err != nil {
		return 0, until, fmt.Errorf("--since: %w", err)
	}
	length = time.Duration(d).Truncate(fleet.Step)
	if length < shortest || length > longest {
		return 0, until, fmt.Errorf("--since %s is not between an hour and a year", f.since)
	}
	until = now
	if f.until != "" {
		if until, err = time.Parse(time.RFC3339, f.until); err != nil {
			return 0, until, fmt.Errorf("--until: %q is no time such as 2026-11-30T00:00:00Z", f.until)
		}
	}
	if until.After(now.Add(fleet.Step)) {
		return 0, until, errors.New("--until lies in the future")
	}
	return length, until.UTC().Truncate(fleet.Step), nil
}

// ask puts the questions to the server, and says on stderr how far it is.
func (f *fleetFlags) ask(ctx context.Context, s Streams, server *promapi.Server, o fleet.Options) (now, before fleet.Answers, warnings []string, err error) {
	line := progress.New(s.Err, tty.Is(s.Err), tty.Width(s.Err))
	if f.quiet || !tty.Is(s.Err) {
		line = progress.New(nil, false, 0)
	}
	began := time.Now()
	surveyor := survey.Surveyor{Server: server, Tell: func(done, of int) {
		line.Show(progress.Status{Phase: fmt.Sprintf("asking the server, question %d of at most %d", done, of), Elapsed: time.Since(began), Left: -1, Wait: -1, SM: -1})
	}}
	now, before, err = surveyor.Two(ctx, o.Until, o.Window)
	line.Clear()
	return now, before, surveyor.Warnings, err
}

// fleetHint says what to do about a server that gives no answer.
func fleetHint(err error) string {
	switch {
	case errors.Is(err, promapi.ErrSecretInAddress):
		return "put them into a file for --http-config (basic_auth: {username: ..., password_file: ...})"
	case errors.Is(err, promapi.ErrRefused):
		return "give credentials with --token-file, $" + envToken + " or --http-config; where there are tenants, name one with --tenant"
	case errors.Is(err, promapi.ErrNoAPI):
		return "the address is that of the server, without /api/v1; Mimir's ends in /prometheus, VictoriaMetrics' in /select/0/prometheus where it is a cluster"
	case errors.Is(err, promapi.ErrTooMuch):
		return "it does not even answer about ten minutes: raise its limits, or --timeout"
	}
	return ""
}

package cli

import (
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/serve"
	"github.com/datawait/datawait/cmd/datawait/internal/web"
)

const serveLong = `serve watches the GPUs of this machine and every training job on it, for weeks, and shows to Prometheus what they did: of every
GPU and job where its allocated time went, of every rank what it waited, of its workers what they cost. It changes nothing and runs no test.

Jobs are seen where the hook runs in them: ` + "`datawait hook DIR`" + ` unpacks it, and DATAWAIT_SPOOL names the spool folder. GPUs of other jobs are
counted too, without their waits. What it counted outlives its restarts. Recordings of every job are kept, a quarter of an hour each: datawait report --job NAME DIR.

Every flag may come from the environment (DATAWAIT_SERVE_LISTEN for --listen) or from one file (--config, YAML with the flags' names); a flag
counts most, then the environment.`

const serveExample = `  datawait serve                                         on this machine only: http://127.0.0.1:9977/metrics
  datawait serve --listen :9977 --web-config web.yml     for a Prometheus elsewhere, with TLS and a password
  datawait serve --gpu dcgm=localhost:5555 --spool /run/datawait/spool
  datawait serve --config /etc/datawait/serve.yml
  datawait report --job train.py /var/lib/datawait       a report of what it saw last`

func newServe(s Streams) *cobra.Command {
	var o serve.Options
	var gpu, level, config string
	spool, state, socket := serve.Folders()
	cmd := &cobra.Command{
		Use:     "serve [flags]",
		Short:   "Watch this machine for weeks, and show to Prometheus where GPU time goes",
		Long:    serveLong,
		Example: serveExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settle(cmd, config); err != nil {
				return err
			}
			var err error
			if o.GPU, err = gpusource.Parse(gpu); err != nil {
				return usage("--gpu takes "+gpusource.Help, "--gpu: %w", err)
			}
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return usage("levels are debug, info, warn and error", "--log-level: %w", err)
			}
			o.Version = Version
			o.Log = slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: l}))
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(serveCollectAt)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return serveFailed(serve.Run(ctx, o))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", serve.DefaultListen, "`address` on which metrics are shown")
	f.StringVar(&o.WebConfig, "web-config", "", "`file` with TLS and passwords, as Prometheus' exporter-toolkit has it")
	f.StringVar(&o.Spool, "spool", spool, "`folder` of the jobs' rings")
	f.StringVar(&o.State, "state", state, "`folder` of what outlives a restart: counters, and recordings of jobs")
	f.StringVar(&o.Socket, "socket", socket, "`path` of a socket at which other datawaits of this machine get GPU samples; - for none")
	f.StringVar(&gpu, "gpu", gpusource.Auto, "GPU `source`: "+gpusource.Help)
	f.DurationVar(&o.Interval, "interval", serve.DefaultInterval, "length of a counter window")
	f.DurationVar(&o.Forget, "forget", serve.DefaultForget, "how long the series of a job stay after its end")
	f.DurationVar(&o.ScrapeInterval, "scrape-interval", serve.DefaultScrape, "the longest interval at which some server scrapes")
	f.IntVar(&o.SeriesLimit, "series-limit", serve.DefaultLimit, "series that are shown at most")
	f.BoolVar(&o.NativeHistograms, "native-histograms", false, "step times with exponential buckets as well")
	f.Int64Var(&o.Keep, "keep", serve.DefaultKeep, "`bytes` of recordings that are kept of one job")
	f.StringVar(&o.ReportListen, "report-listen", "", "`address` on which reports are made on request (needs --report-web-config)")
	f.StringVar(&o.ReportConfig, "report-web-config", "", "`file` like that of --web-config, for --report-listen")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&config, "config", "", "`file` with flags, in YAML")
	complete(cmd, "gpu", gpusource.Kinds()...)
	complete(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}

// serveCollectAt lets an agent that stays collect twice as often as Go does by itself: it makes a few MiB of garbage a minute, and memory is what
// a node notices of it.
const serveCollectAt = 50

// serveFailed gives an error of serve what to do about it.
func serveFailed(err error) error {
	switch hint := web.Hint(err); {
	case err == nil:
		return nil
	case hint != "":
		return &problem{err, statusFailed, hint}
	case errors.Is(err, serve.ErrTaken):
		return &problem{err, statusFailed, "stop the other one, or choose another folder with --state"}
	}
	return failed(err, statusFailed)
}

package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/gate"
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/cmd/datawait/internal/trackrecord"
	"github.com/datawait/datawait/cmd/datawait/internal/wrap"
	"github.com/datawait/datawait/probe/recording"
)

// wrapFlags are the flags that diagnose and record share.
type wrapFlags struct {
	out, gpu, failOn, format string
	record                   string
	force, quiet             bool
	interval, grace          time.Duration
	hourCost                 float64
}

func (f *wrapFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the command's own flags are its own, with or without --
	flags.StringVarP(&f.out, "out", "o", "", "output `folder` (default datawait-<job>-<yyyymmdd-hhmm>)")
	flags.BoolVar(&f.force, "force", false, "replace an earlier run of datawait in the output folder; other files stay")
	flags.StringVar(&f.gpu, "gpu", gpusource.Auto, "GPU `source`: "+gpusource.Help)
	flags.DurationVar(&f.interval, "interval", wrap.DefaultInterval, "length of one GPU counter window")
	flags.DurationVar(&f.grace, "grace", wrap.DefaultGrace, "after SIGTERM, the time until datawait must be gone")
	flags.StringVar(&f.failOn, "fail-on", "", "exit with 3 on these findings, a `list` such as 30%,storage-latency,epoch-start=5%")
	flags.StringVar(&f.format, "format", reports.DefaultList, "forms of the report, a `list` of terminal, html, md, json, png")
	addHourCost(cmd, &f.hourCost)
	addTrackRecord(cmd, &f.record)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no report on the screen")
	complete(cmd, "gpu", gpusource.Kinds()...)
	complete(cmd, "format", formatNames()...)
	complete(cmd, "fail-on", gate.Verdicts()...)
}

// complete lets a shell offer the words that a flag takes.
func complete(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

func formatNames() (names []string) {
	for _, f := range reports.All {
		names = append(names, string(f))
	}
	return names
}

// options checks the flags and gathers what both commands need.
func (f *wrapFlags) options(cmd *cobra.Command, s Streams, command []string) (wrap.Options, error) {
	help := "`" + cmd.CommandPath() + " --help` has examples"
	if len(command) == 0 {
		return wrap.Options{}, usage("put the command after --, as in: "+cmd.CommandPath()+" -- python3 train.py", "no command is given")
	}
	source, err := gpusource.Parse(f.gpu)
	if err != nil {
		return wrap.Options{}, usage("--gpu takes "+gpusource.Help, "--gpu: %w", err)
	}
	if f.interval < 10*time.Millisecond || f.interval > 10*time.Second {
		return wrap.Options{}, usage(help, "--interval %v is not between 10 ms and 10 s", f.interval)
	}
	if f.grace <= 0 {
		return wrap.Options{}, usage(help, "--grace %v is not a time to finish in", f.grace)
	}
	failOn, err := gate.Parse(f.failOn)
	if err != nil {
		return wrap.Options{}, usage("verdicts are "+strings.Join(gate.Verdicts(), ", "), "--fail-on: %w", err)
	}
	formats, err := reports.Parse(f.format)
	if err != nil {
		return wrap.Options{}, usage(help, "--format: %w", err)
	}
	if err := checkHourCost(f.hourCost); err != nil {
		return wrap.Options{}, err
	}
	return wrap.Options{
		HourCost: f.hourCost, TrackRecord: trackrecord.At(f.record, os.Getenv), Command: command, Out: f.out, Force: f.force, GPU: source, Interval: f.interval, Grace: f.grace,
		FailOn: failOn, Formats: formats, Quiet: f.quiet, Version: Version,
		Files: wrap.Files{In: s.In, Out: s.Out, Err: s.Err},
	}, nil
}

// addHourCost adds the price of a GPU, which a report turns hours into money with.
func addHourCost(cmd *cobra.Command, price *float64) {
	cmd.Flags().Float64Var(price, "gpu-hour-cost", 0, "`price` of one GPU for one hour, in any currency: the report then says what the time came to")
}

func checkHourCost(price float64) error {
	if price < 0 || math.IsNaN(price) || math.IsInf(price, 0) {
		return usage("as in --gpu-hour-cost 2.50", "--gpu-hour-cost %v is no price", price)
	}
	return nil
}

// runWrapped runs the command and turns the outcome into an exit status.
func runWrapped(ctx context.Context, o wrap.Options) error {
	outcome, err := wrap.Run(ctx, o)
	if err != nil {
		return failed(err, run.StatusOf(err))
	}
	if outcome.Status != statusOK {
		return quietly(outcome.Status)
	}
	return nil
}

// parseLegs reads the cached legs of --legs; the first is run first and most often.
func parseLegs(list string) ([]recording.Leg, error) {
	var legs []recording.Leg
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(recording.Legs, func(l recording.Leg) bool { return l.String() == name })
		switch {
		case name == "" || name == recording.LegLive.String(): // live blocks are always there
		case i < 0:
			return nil, fmt.Errorf("there is no leg %q", name)
		case !slices.Contains(legs, recording.Legs[i]):
			legs = append(legs, recording.Legs[i])
		}
	}
	if len(legs) == 0 {
		return nil, fmt.Errorf("no cached leg is given")
	}
	return legs, nil
}

// scheduler names the scheduler that started this process, "" if none is known.
func scheduler(getenv func(string) string) string {
	switch {
	case getenv("SLURM_JOB_ID") != "":
		return "Slurm"
	case getenv("KUBERNETES_SERVICE_HOST") != "":
		return "Kubernetes"
	}
	return ""
}

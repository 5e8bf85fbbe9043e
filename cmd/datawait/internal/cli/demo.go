package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/cmd/datawait/internal/demo"
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	"github.com/datawait/datawait/cmd/datawait/internal/wrap"
	"github.com/datawait/datawait/report/terminal"
)

const demoLong = `demo tells the case this tool was made for, in about a minute and without a GPU.

A retailer's job reads a photo and a record per product from an object store, with two workers and hardly any
prefetching: the GPU is allocated all the time and works a quarter of it. The demo diagnoses that job, preprocesses the
catalogue once into shards, diagnoses the repaired job, and sets both side by side. The object store runs inside datawait; requests, decoding,
processes and queues are real. The GPU is emulated, and everything it says is labelled so.`

const demoExample = `  datawait demo
  datawait demo --out story --torch off`

func newDemo(s Streams) *cobra.Command {
	var out, python, torch string
	var force bool
	cmd := &cobra.Command{
		Use:     "demo [flags]",
		Short:   "The whole story without a GPU: a job that waits, its repair, and both side by side",
		Long:    demoLong,
		Example: demoExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if torch != "auto" && torch != "off" {
				return usage("auto uses PyTorch's loader where that Python has it", "--torch %q is neither auto nor off", torch)
			}
			if _, err := exec.LookPath(python); err != nil {
				return usage("name another with --python", "there is no Python %q", python)
			}
			o := demo.Options{Out: out, Python: python, Torch: torch == "auto", Budget: demoBudget,
				Stdout: s.Out, Screen: terminal.Options{Color: tty.Color(s.Out), Width: tty.Width(s.Out)}, Stderr: s.Err, Observe: observer(s, force)}
			return demo.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&out, "out", "o", "datawait-demo", "`folder` of the two reports and their comparison")
	flags.BoolVar(&force, "force", false, "replace the reports of an earlier demo in that folder")
	flags.StringVar(&python, "python", "python3", "the `Python` that trains")
	flags.StringVar(&torch, "torch", "auto", "PyTorch's loader: auto (where it is installed) or off")
	return cmd
}

// demoBudget is the length of each of the two diagnoses; with preparation the demo stays within a minute.
const demoBudget = 22 * time.Second

// observer diagnoses one of the demo's runs in this process. Its screen goes to stderr: stdout has the comparison.
func observer(s Streams, force bool) demo.Diagnose {
	return func(ctx context.Context, job demo.Job) (*analysis.Result, error) {
		if err := os.MkdirAll(filepath.Dir(job.Out), 0o755); err != nil {
			return nil, fmt.Errorf("making the output folder: %w", err)
		}
		formats, err := reports.Parse("terminal,html,md,json")
		if err != nil {
			return nil, err
		}
		legs, err := parseLegs("host-cached")
		if err != nil {
			return nil, err
		}
		outcome, err := wrap.Run(ctx, wrap.Options{
			Command: job.Command, Env: job.Env, Test: true, Duration: job.Budget, Legs: legs,
			GPU: gpusource.Choice{Kind: gpusource.Emulated}, Interval: 100 * time.Millisecond, Grace: 20 * time.Second,
			Out: job.Out, Force: force, Formats: formats, Version: Version,
			Files: wrap.Files{In: s.In, Out: s.Err, Err: s.Err}, ScreenToErr: true,
		})
		if err != nil {
			return nil, err
		}
		if outcome.Status > 128 { // stopped by whoever watches it, who knows
			return nil, quietly(outcome.Status)
		}
		if outcome.Result == nil || outcome.Status != statusOK {
			return nil, fmt.Errorf("it ended with status %d before it could be diagnosed; see %s", outcome.Status, outcome.Dir)
		}
		return outcome.Result, nil
	}
}

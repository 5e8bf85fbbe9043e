package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/cmd/datawait/internal/folder"
	"github.com/datawait/datawait/cmd/datawait/internal/gate"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/shelf"
	"github.com/datawait/datawait/cmd/datawait/internal/trackrecord"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	"github.com/datawait/datawait/probe/recording"
	reporting "github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/terminal"
)

const reportLong = `report makes the report of a run again, from the folder that --out named. It also reads what is left of a run
whose datawait or training was killed, one node's part of a recording, and a bare spool of rings.

A single form goes to stdout. Otherwise the terminal's form goes to stdout and the others into files beside the
recording, or in the folder that -o names.`

const reportExample = `  datawait report datawait-train-20261130-0712
  datawait report --format json datawait-train-20261130-0712 | jq .step.data_wait_share
  datawait report --format md -o ticket.md datawait-train-20261130-0712
  datawait report --format terminal /dev/shm/datawait-0/run-4711-998877      a spool that was left behind
  datawait report --job train.py -o report /var/lib/datawait                 what datawait serve saw of a job last
  datawait report --gpu-hour-cost 2.50 datawait-train-20261130-0712
  datawait report --fail-on 20% datawait-train-20261130-0712`

// reportFlags are the flags of report.
type reportFlags struct {
	format, out, failOn, record string
	job                         string
	hourCost                    float64
}

func newReport(s Streams) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:     "report [flags] DIR",
		Short:   "Make the report of a run again from its recording",
		Long:    reportLong,
		Example: reportExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("`datawait report --help` has examples", "report takes one recording, but was given %d", len(args))
			}
			dir := args[0]
			if f.job != "" {
				var err error
				if dir, err = shelf.Find(dir, f.job); err != nil {
					return failed(err, statusFailed)
				}
			}
			return f.run(s, dir)
		},
	}
	cmd.Flags().StringVar(&f.format, "format", reports.DefaultList, "forms, a `list` of terminal, html, md, json, png")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "`file` for a single form (- for stdout), or folder for the files")
	cmd.Flags().StringVar(&f.failOn, "fail-on", "", "exit with 3 on these findings, a `list` such as 30%,storage-latency,epoch-start=5%")
	cmd.Flags().StringVar(&f.job, "job", "", "`name` of a job that datawait serve watches; DIR is its state folder")
	addHourCost(cmd, &f.hourCost)
	addTrackRecord(cmd, &f.record)
	complete(cmd, "format", formatNames()...)
	complete(cmd, "fail-on", gate.Verdicts()...)
	return cmd
}

func (f reportFlags) run(s Streams, dir string) error {
	failOn, err := gate.Parse(f.failOn)
	if err != nil {
		return usage("verdicts are "+strings.Join(gate.Verdicts(), ", "), "--fail-on: %w", err)
	}
	formats, err := reports.Parse(f.format)
	if err != nil {
		return usage("`datawait report --help` has examples", "--format: %w", err)
	}
	if f.out == "-" {
		if len(formats) != 1 {
			return usage("ask for one with --format", "%d forms do not fit on stdout together", len(formats))
		}
		f.out = ""
	}
	if err := checkHourCost(f.hourCost); err != nil {
		return err
	}
	result, opened, err := reports.Analyse(dir, analysis.Options{Version: Version, HourCost: f.hourCost})
	if err != nil {
		return failed(err, statusFailed)
	}
	result.TrackRecord = trackrecord.At(f.record, os.Getenv).Quote(result.Emulated)
	if err := f.write(s, dir, result, opened, formats); err != nil {
		return failed(err, statusFailed)
	}
	tellLeftover(s, dir, opened)
	found, err := failOn.Findings(result)
	return judged(s, found, err)
}

// write puts the forms where they belong.
func (f reportFlags) write(s Streams, dir string, r *analysis.Result, opened *recording.Recording, formats []reporting.Format) error {
	single := len(formats) == 1
	switch {
	case single && f.out != "" && filepath.Ext(f.out) != "":
		return oneFile(f.out, r, formats[0])
	case single && f.out == "" && formats[0] == reports.Terminal:
		return reports.Screen(s.Out, r, screen(s, nil, ""))
	case single && f.out == "" && formats[0] != reporting.Plots:
		return reports.One(s.Out, r, formats[0])
	}
	target := f.out
	if target == "" {
		if bareSpool(opened) {
			return usage("name one with -o, or ask for --format terminal", "%s is a spool, where no report belongs", dir)
		}
		target = dir
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("making the folder for the report: %w", err)
	}
	names, err := reports.Write(r, target, formats)
	if hasTerminal(formats) {
		if serr := reports.Screen(s.Out, r, screen(s, names, target)); err == nil {
			err = serr
		}
	}
	return err
}

func hasTerminal(formats []reporting.Format) bool {
	for _, f := range formats {
		if f == reports.Terminal {
			return true
		}
	}
	return false
}

// oneFile writes a single form into a file that the user named.
func oneFile(path string, r *analysis.Result, f reporting.Format) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	defer file.Close()
	if f == reports.Terminal {
		err = reports.Screen(file, r, terminal.Options{})
	} else {
		err = reports.One(file, r, f)
	}
	if err == nil {
		err = file.Close()
	}
	return err
}

func screen(s Streams, names []string, dir string) terminal.Options {
	return terminal.Options{Color: tty.Color(s.Out), Width: tty.Width(s.Out), Files: names, Dir: dir}
}

// bareSpool reports whether a recording is a folder of rings, with no agent's part.
func bareSpool(r *recording.Recording) bool {
	for _, n := range r.Nodes() {
		if n.Manifest().Format != "" {
			return false
		}
	}
	return true
}

// tellLeftover points to the rings of a run whose agent was killed: what it had not drained is still there.
func tellLeftover(s Streams, dir string, r *recording.Recording) {
	for _, n := range r.Nodes() {
		m := n.Manifest()
		spool, _ := m.Options["spool"].(string)
		if m.EndedAt.IsKnown() || spool == "" || spool == dir || !hasRings(spool) {
			continue
		}
		if folder.InUse(spool) {
			fmt.Fprintf(s.Err, "datawait: the run on %s still goes on; this report covers what is recorded so far\n", m.Host)
			continue
		}
		fmt.Fprintf(s.Err, "datawait: the run on %s was not finished; its rings are still in %s\n", m.Host, spool)
		fmt.Fprintf(s.Err, "hint: `datawait report --format terminal %s` reads what they hold, until the job or you remove them\n", spool)
	}
}

func hasRings(dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if _, _, ok := recording.ParseRingName(e.Name()); ok {
			return true
		}
	}
	return false
}

package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/track"
	"github.com/datawait/datawait/cmd/datawait/internal/gate"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/trackrecord"
	reporting "github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/terminal"
)

const compareLong = `compare sets two runs of one job side by side: before a change, and after it. Each is a folder that diagnose or record
left, or a JSON report. It says what became better, with intervals, and what the two runs are too different to tell; and for
fixes that the first run ranked and the second one applied, whether what was predicted came true.

Predictions that were checked are kept in a file of this user, one line each, and later reports say how they came out. --track-record
names another file, or none.`

const compareExample = `  datawait compare before after
  datawait compare -o comparison before after                       files as well: HTML, Markdown, JSON
  datawait compare --epochs 90 --gpu-hour-cost 2.50 before after    what a whole training takes and costs
  datawait compare --applied preprocess-once before after           where a recording cannot tell what was done
  datawait compare --format json before/report.json after/report.json | jq '.rows[] | select(.outcome == "worse")'
  datawait compare --fail-on worse=5% baseline today`

// compareFlags are the flags of compare.
type compareFlags struct {
	format, out, failOn, applied, record string
	epochs                               int
	hourCost                             float64
}

func newCompare(s Streams) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:     "compare [flags] BEFORE AFTER",
		Short:   "Set two runs side by side, and predictions beside what came of them",
		Long:    compareLong,
		Example: compareExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("`datawait compare --help` has examples", "compare takes two runs, but was given %d", len(args))
			}
			return f.run(s, args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", "forms, a `list` of terminal, html, md, json (default terminal, and all of them with -o FOLDER)")
	flags.StringVarP(&f.out, "out", "o", "", "`file` for a single form (- for stdout), or folder for the files")
	flags.StringVar(&f.applied, "applied", "", "the fixes that were applied, a `list` such as preprocess-once,more-workers (default: what the recordings show)")
	flags.IntVar(&f.epochs, "epochs", 0, "reckon a training of so `many` epochs")
	flags.StringVar(&f.failOn, "fail-on", "", "exit with 3 where these became worse, a `list` such as worse, worse=5%, step_seconds, epoch_seconds=10%")
	addTrackRecord(cmd, &f.record)
	addHourCost(cmd, &f.hourCost)
	complete(cmd, "format", comparisonNames()...)
	complete(cmd, "applied", fixes.IDs()...)
	complete(cmd, "fail-on", gate.Rows()...)
	return cmd
}

// addTrackRecord adds the file of checked predictions, which reports quote.
func addTrackRecord(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "track-record", "", "`file` of the predictions that were checked, or off (default $XDG_STATE_HOME/datawait/track-record.jsonl)")
}

func comparisonNames() (names []string) {
	for _, f := range reports.Comparison {
		names = append(names, string(f))
	}
	return names
}

func (f compareFlags) run(s Streams, before, after string) error {
	formats, failOn, o, err := f.parse()
	if err != nil {
		return err
	}
	var inputs [2]compare.Input
	for i, path := range []string{before, after} {
		r, err := reports.Load(path, analysis.Options{Version: Version, HourCost: f.hourCost})
		if err != nil {
			return failed(err, statusFailed)
		}
		inputs[i] = compare.Input{Path: path, Result: r}
	}
	c := compare.Run(inputs[0], inputs[1], o)
	remember(s, c, trackrecord.At(f.record, os.Getenv))
	shown := document{name: "the comparison",
		screen: func(w io.Writer, o terminal.Options) error { return reporting.CompareTerminal(w, c, o) },
		one:    func(w io.Writer, form reporting.Format) error { return reports.OneComparison(w, c, form) },
		files: func(dir string, forms []reporting.Format) ([]string, error) {
			return reports.WriteComparison(c, dir, forms)
		}}
	if err := shown.write(s, f.out, formats); err != nil {
		return failed(err, statusFailed)
	}
	if !c.Comparable {
		return &problem{fmt.Errorf("%s and %s are not comparable", before, after), statusFailed, "record both runs of one job on the same kind of machine, for at least some dozen steps"}
	}
	found, err := failOn.Findings(c)
	return judged(s, found, err)
}

// parse checks the flags.
func (f compareFlags) parse() (formats []reporting.Format, failOn gate.Comparison, o compare.Options, err error) {
	help := "`datawait compare --help` has examples"
	if formats, err = chooseForms("compare", f.format, f.out, reports.ParseComparison); err != nil {
		return nil, failOn, o, err
	}
	if failOn, err = gate.ParseComparison(f.failOn); err != nil {
		return nil, failOn, o, usage("rows are "+strings.Join(compare.RowIDs(), ", "), "--fail-on: %w", err)
	}
	if f.epochs < 0 {
		return nil, failOn, o, usage(help, "--epochs %d is no number of epochs", f.epochs)
	}
	if err = checkHourCost(f.hourCost); err != nil {
		return nil, failOn, o, err
	}
	o = compare.Options{Version: Version, Epochs: f.epochs, HourCost: f.hourCost}
	for id := range strings.SplitSeq(f.applied, ",") {
		switch id = strings.TrimSpace(id); {
		case id == "" || slices.Contains(o.Applied, id):
		case !slices.Contains(fixes.IDs(), id):
			return nil, failOn, o, usage("fixes are "+strings.Join(fixes.IDs(), ", "), "--applied: there is no fix %q", id)
		default:
			o.Applied = append(o.Applied, id)
		}
	}
	return formats, failOn, o, nil
}

// remember keeps the predictions that were judged, and quotes all of them. What cannot be kept is said and costs nothing else.
func remember(s Streams, c *compare.Comparison, file trackrecord.File) {
	var entries []track.Entry
	for _, p := range c.Predictions {
		if e, ok := c.Entry(p, time.Now().UTC()); ok {
			entries = append(entries, e)
		}
	}
	if err := file.Keep(entries); err != nil {
		fmt.Fprintln(s.Err, "datawait:", err)
	}
	c.TrackRecord = file.Quote(c.Emulated)
}

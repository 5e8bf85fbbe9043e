// Package cli is the command line of datawait: one file per command.
//
// It decides what is said, where, and with which exit status (voice.go); what a command does is in packages of its
// own. Read [Main] first.
package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"
)

// Streams are the three files of a process. A wrapped command gets them as they are.
type Streams struct {
	In       *os.File
	Out, Err *os.File
}

// Main runs one command line, without the program's name, and returns its exit status.
func Main(args []string, s Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	return report(s.Err, root.ExecuteContext(context.Background()))
}

const rootLong = `datawait tells whether the GPUs of a PyTorch training job work or wait for data, and which fix
removes the most wait. It attaches to an unmodified script, needs no root, and leaves a report.`

const rootExample = `  datawait demo                                  the whole story, without a GPU
  datawait diagnose -- python3 train.py          a throw-away run: live steps, then steps on cached batches
  datawait record -- python3 train.py            only watch, until the command ends
  datawait report datawait-train-20261130-0712   make the report again from what a run left
  datawait compare before after                  what a change came to, and whether predictions came true
  datawait serve                                 left running: where GPU time goes, for Prometheus
  datawait fleet --prometheus URL                which jobs of a cluster lose the most GPU-hours`

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "datawait",
		Short:         "Are these GPUs working, or waiting for data?",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		Version:       Version,

		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				hint := "`datawait --help` lists the commands"
				if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
					hint = "did you mean datawait " + like[0] + "? " + hint
				}
				return usage(hint, "there is no command %q", args[0])
			}
			return cmd.Help()
		},
	}
	root.SetVersionTemplate("datawait {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("`"+cmd.CommandPath()+" --help` lists the flags", "%w", err)
	})
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(newDiagnose(s), newRecord(s), newReport(s), newCompare(s), newServe(s), newFleet(s), newDoctor(s), newDemo(s), newHook(s), newVersion(s), newGPUChild(s), newGPUCapture(s), newWindows(s))
	return root
}

package cli

import (
	"github.com/spf13/cobra"
)

const recordLong = `record watches the command until it ends and changes nothing: its files, terminal, signals and exit status are
its own, and so is stdout. The report is written into the output folder and, in short, to stderr.`

const recordExample = `  datawait record -- python3 train.py
  datawait record --out report --format json -q -- torchrun --nproc_per_node 8 train.py
  datawait record --fail-on 30% -- python3 train.py && echo "waits less than 30 %"`

func newRecord(s Streams) *cobra.Command {
	var f wrapFlags
	cmd := &cobra.Command{
		Use:     "record [flags] -- COMMAND…",
		Short:   "Watch a run until it ends, and change nothing",
		Long:    recordLong,
		Example: recordExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, s, args)
			if err != nil {
				return err
			}
			o.ScreenToErr = true
			return runWrapped(cmd.Context(), o)
		},
	}
	f.add(cmd)
	return cmd
}

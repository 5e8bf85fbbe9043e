package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	"github.com/datawait/datawait/cmd/datawait/internal/wrap"
)

const diagnoseLong = `diagnose runs the command as a throw-away run: it watches live steps, then alternates them with steps on
batches that are already in memory, and then ends the run by itself and reports. Until the first batch from memory the
script saves as it always does; from then on no checkpoint is saved, overwritten or removed: the first attempt ends the run.

Where 40 % of a budget of a minute or more are then left, and other loader arguments rank first or second with more than 5 %,
the loader is made anew with them in the same run, and what a step took stands beside the prediction; see --try.

Without a terminal, under Slurm or in Kubernetes it only watches, as record does, unless --throwaway says that the
run may be ended.

The exit status is 0 when datawait ended the run, the command's own when it ended by itself (128 + n after signal
n), 3 for findings named by --fail-on, 125 when datawait itself failed, 126 and 127 when the command could not be
executed or found.`

const diagnoseExample = `  datawait diagnose -- python3 train.py --epochs 1
  datawait diagnose --out report --duration 5m -- torchrun --nproc_per_node 8 train.py
  srun datawait diagnose --throwaway --out /results/run7 -- python3 train.py
  datawait diagnose --gpu emulated --duration 30s -- python3 script.py     a script that makes a datawait.emulated.Gpu()
  datawait diagnose --try --duration 5m -- python3 train.py           tries what it recommends
  datawait diagnose --throwaway --fail-on 20%,hook-not-loaded -- python3 train.py`

func newDiagnose(s Streams) *cobra.Command {
	var f wrapFlags
	var duration time.Duration
	var steps uint64
	var throwaway bool
	var legs string
	var try bool
	cmd := &cobra.Command{
		Use:     "diagnose [flags] -- COMMAND…",
		Short:   "Measure a throw-away run, and what it would do if data were there at once",
		Long:    diagnoseLong,
		Example: diagnoseExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, s, args)
			if err != nil {
				return err
			}
			if duration < 5*time.Second {
				return usage("20s is enough for steps of 50 ms; slow steps need minutes", "--duration %v is too short for a test", duration)
			}
			if o.Legs, err = parseLegs(legs); err != nil {
				return usage("the cached legs are host-cached, host-cached-busy, device-cached and reread", "--legs: %w", err)
			}
			o.Duration, o.Steps, o.Try = duration, steps, plan.TrySpare
			if cmd.Flags().Changed("try") {
				o.Try = map[bool]plan.Trying{true: plan.TryAlways, false: plan.TryNone}[try]
			}
			o.Test = mayEnd(s, throwaway)
			return runWrapped(cmd.Context(), o)
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&duration, "duration", wrap.DefaultDuration, "budget of the run, start and report included")
	cmd.Flags().Uint64Var(&steps, "steps", 0, "end the run after so many steps at the latest (0 = only --duration counts)")
	cmd.Flags().BoolVar(&throwaway, "throwaway", false, "the run may be ended, also without a terminal or under a scheduler")
	cmd.Flags().BoolVar(&try, "try", false, "then try what it recommends of loader arguments, and samples kept in memory, in the same run (default: only the best\nloader arguments, where 40 % of a budget of a minute or more are left; --try=false: nothing)")
	cmd.Flags().StringVar(&legs, "legs", "host-cached,host-cached-busy,device-cached", "what the test feeds in place of live data, the most important first; reread is another")
	return cmd
}

// mayEnd decides whether this run may be tested and ended. Somebody who waits at a terminal called diagnose to see it
// end; a job that nobody watches is too easily one that was meant to go on.
func mayEnd(s Streams, throwaway bool) bool {
	if throwaway {
		return true
	}
	why := ""
	if name := scheduler(os.Getenv); name != "" {
		why = "under " + name
	} else if !tty.Is(s.Err) {
		why = "without a terminal"
	}
	if why == "" {
		return true
	}
	fmt.Fprintf(s.Err, "datawait: %s this run is only watched, until the command ends\n", why)
	fmt.Fprintln(s.Err, "hint: with --throwaway datawait tests the run on cached batches and then ends it")
	return false
}

package cli

import (
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/gpuwatch"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu/child"
	"github.com/datawait/datawait/probe/gpu/served"
	"github.com/datawait/datawait/probe/recording"
)

// newGPUChild is the command an agent starts itself again with, to read GPU counters in a process of their own. It is
// not for people.
func newGPUChild(s Streams) *cobra.Command {
	var o gpusource.Options
	var wanted string
	cmd := &cobra.Command{
		Use:    gpuwatch.Command,
		Short:  "Read GPU counters for an agent (started by datawait itself)",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			choice, err := gpusource.Parse(wanted)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" && o.Interval < time.Second {
				debug.SetGCPercent(collectAt)
			}
			ctx, stop := child.UntilEOF(cmd.Context(), s.In)
			defer stop()
			if conn := choice.Served(o); conn != nil {
				return served.Relay(ctx, s.Out, conn)
			}
			source, poll, err := choice.Open(ctx, o)
			if err != nil {
				return err
			}
			defer source.Close()
			return child.Serve(ctx, s.Out, source, child.ServeOptions{Declaration: agentDeclaration(), Poll: poll})
		},
	}
	cmd.Flags().StringVar(&wanted, "gpu", gpusource.Emulated, "what to read")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "folder of the busy logs")
	cmd.Flags().DurationVar(&o.Interval, "interval", 100*time.Millisecond, "length of one window")
	cmd.Flags().BoolVar(&o.Own, "own", false, "ask no other datawait")
	cmd.Flags().Uint64Var(&o.Since, "since", 0, "CLOCK_MONOTONIC in ns before which no window begins")
	return cmd
}

// collectAt spares the child of a run in short windows most collections, for some MiB: go-dcgm leaves MiBs of garbage at each poll, and
// next to nothing else lives. Where windows are long polls are seldom, and memory is what an agent that stays costs.
const collectAt = 200

// agentDeclaration describes this process as a stream of a recording.
func agentDeclaration() recording.Declaration {
	host, _ := os.Hostname()
	boot, _ := clock.BootID()
	return recording.Declaration{Producer: recording.ProducerAgent, Host: host, BootID: boot,
		PID: os.Getpid(), PPID: os.Getppid(), StartTicks: run.StartTicks(os.Getpid())}
}

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/doctor"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/dcgm"
	"github.com/datawait/datawait/probe/gpu/nvml"
)

// newGPUCapture is the command in which doctor asks one of NVIDIA's libraries everything, in a process that may crash. It is not for
// people.
func newGPUCapture(s Streams) *cobra.Command {
	var library, address string
	cmd := &cobra.Command{
		Use:    doctor.CaptureCommand,
		Short:  "Keep what a library answers (started by datawait itself)",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := nvml.Capture
			if library == dcgm.Name {
				ask = func() (gpu.Capture, error) { return dcgm.Capture(cmd.Context(), dcgm.Options{Address: address}) }
			}
			capture, err := ask()
			if err != nil {
				fmt.Fprintln(s.Err, err)
			}
			return json.NewEncoder(s.Out).Encode(capture)
		},
	}
	cmd.Flags().StringVar(&library, "library", nvml.StatesName, "nvml or dcgm")
	cmd.Flags().StringVar(&address, "address", "", "of the host engine")
	return cmd
}

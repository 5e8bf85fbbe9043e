package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/doctor"
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
)

const doctorLong = `doctor says what can be measured on this machine, from which source and at which grade, and the one command or
setting that raises it. It rehearses: a job of some seconds runs under datawait record, and what its recording holds and
lacks is told. It trains nothing, touches no job that runs, and needs no root.`

const doctorExample = `  datawait doctor
  datawait doctor --python venv/bin/python            the interpreter that trains
  datawait doctor --gpu dcgm=10.0.0.7:5555            one source alone
  datawait doctor --capture machine.scenario          what the libraries answer, masked, for a bug report
  datawait doctor --format json | jq '.findings[] | select(.state != "good")'`

func newDoctor(s Streams) *cobra.Command {
	var gpu, format, capture string
	o := doctor.Options{Version: Version}
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what can be measured here, and what would raise it",
		Long:    doctorLong,
		Example: doctorExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.GPU, err = gpusource.Parse(gpu); err != nil {
				return usage("--gpu takes "+gpusource.Help, "--gpu: %w", err)
			}
			if format != "terminal" && format != "json" {
				return usage("--format takes terminal or json", "--format: %q is not a format of doctor", format)
			}
			if o.Python != "" {
				if _, err := exec.LookPath(o.Python); err != nil {
					return usage("name another with --python", "there is no Python %q", o.Python)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			o.Tell = func(what string) { fmt.Fprintln(s.Err, "datawait: "+what) }
			found, err := doctor.Examine(ctx, o)
			if ctx.Err() != nil {
				return quietly(128 + int(syscall.SIGINT))
			}
			if err != nil {
				return failed(err, statusFailed)
			}
			if err := showFindings(s, found, format); err != nil || capture == "" {
				return err
			}
			return keepCapture(s, capture, doctor.Capture(ctx, o, found))
		},
	}
	cmd.Flags().StringVar(&o.Python, "python", "", "`interpreter` to rehearse with (default: the first that has PyTorch)")
	cmd.Flags().StringVar(&gpu, "gpu", gpusource.Auto, "GPU `source`: "+gpusource.Help)
	cmd.Flags().StringVar(&capture, "capture", "", "write what the GPU libraries answer here into a masked `file`, to send with a bug report")
	cmd.Flags().StringVar(&format, "format", "terminal", "`form`: terminal or json")
	complete(cmd, "gpu", gpusource.Kinds()...)
	complete(cmd, "format", "terminal", "json")
	return cmd
}

// keepCapture writes a new file: what somebody is about to send should not be mixed with what lay there.
func keepCapture(s Streams, path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return failed(fmt.Errorf("keeping the capture: %w", err), statusFailed)
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return failed(fmt.Errorf("keeping the capture: %w", err), statusFailed)
	}
	fmt.Fprintln(s.Err, "datawait: the capture is in "+path+"; read it before you send it")
	return nil
}

func showFindings(s Streams, found doctor.Document, format string) error {
	if format == "json" {
		text, err := json.MarshalIndent(found, "", "  ")
		if err == nil {
			_, err = fmt.Fprintln(s.Out, string(text))
		}
		return err
	}
	return found.Write(s.Out, doctor.Layout{Color: tty.Color(s.Out), Width: tty.Width(s.Out)})
}

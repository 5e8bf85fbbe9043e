package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
)

// Version is what recordings and reports name as their writer. A release sets it at link time:
//
//	go build -ldflags "-X github.com/datawait/datawait/cmd/datawait/internal/cli.Version=1.0.0" ./cmd/datawait
var Version = "0.1.0-dev"

func newVersion(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and which GPU sources this build has",
		Example: "  datawait version",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(s.Out, "datawait %s%s, %s, %s/%s\n", Version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintln(s.Out, "GPU sources: "+strings.Join(gpusource.Built(), ", "))
			return nil
		},
	}
}

// revision returns " (commit abcdef012345)" where the build knows it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (commit " + s.Value[:12] + ")"
		}
	}
	return ""
}

// noArguments refuses arguments in the voice of datawait.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("`"+cmd.CommandPath()+" --help` shows how to call it", "%s takes no argument, but was given %q", cmd.CommandPath(), args[0])
	}
	return nil
}

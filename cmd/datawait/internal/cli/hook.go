package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datawait/datawait/cmd/datawait/internal/serve"
	"github.com/datawait/datawait/probe/hook"
)

const hookLong = `hook lays the Python hook out in a folder and prints the environment that makes a training job load it, as lines for a shell. It is
for jobs that ` + "`datawait serve`" + ` watches: an init container copies the hook into the pod, a machine's image has it in a fixed place. Under
diagnose and record it is not needed.

Everybody may read the files. A folder that holds this very hook is left as it is; one that holds anything else is refused, another
version of the hook too: a job that runs may still import from it. Give each version a folder of its own.`

const hookExample = `  eval "$(datawait hook /opt/datawait/hook)"                     on this machine, for this shell
  datawait hook /hook                                            in an init container, /hook being a volume of the pod
  datawait hook --spool /spool /hook                             where the pod has another mount point for the spool
  datawait hook /opt/datawait/hook >/etc/profile.d/datawait.sh   for all who log in`

func newHook(s Streams) *cobra.Command {
	var spool string
	cmd := &cobra.Command{
		Use:     "hook [flags] DIR",
		Short:   "Lay the Python hook out in a folder, for jobs that serve watches",
		Long:    hookLong,
		Example: hookExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("`datawait hook --help` has examples", "hook takes one folder, but was given %d", len(args))
			}
			return layHook(s, args[0], spool)
		},
	}
	cmd.Flags().StringVar(&spool, "spool", "", "`folder` in which serve looks for jobs (default $DATAWAIT_SPOOL, else where serve looks)")
	return cmd
}

func layHook(s Streams, dir, spool string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return failed(err, statusFailed)
	}
	if strings.ContainsRune(dir, os.PathListSeparator) {
		return usage("choose another folder", "PYTHONPATH cannot hold %s: the colon would end the name", dir)
	}
	usual, _, _ := serve.Folders()
	spool = spoolOf(spool, os.Getenv("DATAWAIT_SPOOL"), usual)
	if !filepath.IsAbs(spool) {
		return usage("give the whole path", "--spool %s means another folder in every working folder", spool)
	}
	switch _, err = hook.Install(dir); {
	case errors.Is(err, hook.ErrForeign):
		return &problem{err, statusFailed, "choose an empty folder, or a new one: datawait hook " + quoted(dir+"-"+Version)}
	case err != nil:
		return failed(err, statusFailed)
	}
	fmt.Fprintf(s.Out, "export PYTHONPATH=%s\"${PYTHONPATH:+:$PYTHONPATH}\"\n", quoted(dir))
	fmt.Fprintf(s.Out, "export DATAWAIT_SPOOL=%s\n", quoted(spool))
	return nil
}

// spoolOf returns the spool that was asked for, by flag or environment, or the usual one. A user without a home, in a container, has none
// of their own: that is no reason to keep a job from starting.
func spoolOf(flag, variable, usual string) string {
	if !filepath.IsAbs(usual) {
		usual = "/run/datawait/spool"
	}
	return cmp.Or(flag, variable, usual)
}

// quoted makes one word of a POSIX shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

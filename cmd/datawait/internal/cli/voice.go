// How datawait speaks.
//
// stdout carries results, stderr talk. A problem is one line that begins with "error:", lower case and without a full
// stop: what happened, and what it means for the result. What to do about it follows as "hint:". What is only worth
// knowing begins with "warning:" or "datawait:".

package cli

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/datawait/datawait/cmd/datawait/internal/folder"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/recording"
)

// Exit statuses of datawait's own. A wrapped command's status is passed on, and run.Status… stand for datawait's
// failures while it wraps one.
const (
	statusOK       = 0
	statusFailed   = 1
	statusUsage    = 2
	statusFindings = 3
)

// problem is an error with the exit status it leads to and what to do about it.
type problem struct {
	err    error
	status int
	hint   string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// usage is a problem with how datawait was called.
func usage(hint, format string, args ...any) error {
	return &problem{fmt.Errorf(format, args...), statusUsage, hint}
}

// failed gives an error the status of a failed command, or of datawait's own failure while it wraps one.
func failed(err error, status int) error {
	var p *problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	return &problem{err, status, hintFor(err)}
}

// quietly ends with a status and says nothing: everything is said already.
type quietly int

func (q quietly) Error() string { return fmt.Sprintf("exit status %d", int(q)) }

// report says what went wrong and returns the exit status.
func report(stderr io.Writer, err error) int {
	var quiet quietly
	var p *problem
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &quiet):
		return int(quiet)
	case !errors.As(err, &p):
		p = &problem{err, statusFailed, hintFor(err)}
	}
	fmt.Fprintln(stderr, "error:", p.err)
	if p.hint != "" {
		fmt.Fprintln(stderr, "hint:", p.hint)
	}
	return p.status
}

// hints say what to do about errors that have one usual cause.
var hints = []struct {
	err  error
	hint string
}{
	{folder.ErrInUse, "wait for it to end, or choose another folder with --out"},
	{folder.ErrExists, "choose another folder, or let --force replace an earlier run of datawait; other files are never removed"},
	{recording.ErrNewer, "read it with the datawait that wrote it, or a later one"},
	{recording.ErrNotRecording, "give the folder that --out named, one of its node-* folders, or a spool with rings in it"},
	{run.ErrNotFound, "the command after -- is looked for in PATH; give its path, or its interpreter: datawait diagnose -- python3 train.py"},
	{run.ErrNotExecutable, "make it executable, or name its interpreter: datawait diagnose -- python3 train.py"},
	{syscall.ENOSPC, "free some space, or choose another disk with --out"},
}

func hintFor(err error) string {
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}

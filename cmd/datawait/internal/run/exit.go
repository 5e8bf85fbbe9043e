package run

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit statuses of a program that wraps another, as env(1), timeout(1) and the shells use them.
const (
	StatusOwnFailure    = 125 // datawait itself failed, the command was not run or its fate is not known
	StatusNotExecutable = 126
	StatusNotFound      = 127
	statusSignal        = 128 // plus the signal's number
)

// Exit is how a command ended.
type Exit struct {
	Code   int            // its exit code; meaningless when a signal ended it
	Signal syscall.Signal // the signal that ended it, 0 if it exited
}

// Status returns the exit status a shell would report: the command's own code, or 128 + n for signal n.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return statusSignal + int(e.Signal)
	}
	return e.Code
}

// String describes the end for people: "exited with code 1", "was ended by SIGKILL".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "was ended by " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Signal: ws.Signal()}
	}
	return Exit{Code: ws.ExitStatus()}
}

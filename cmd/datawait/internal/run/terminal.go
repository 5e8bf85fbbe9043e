// The terminal's foreground group.
//
// The command gets a process group of its own, so that a throw-away run can be killed as a whole. A group that is not
// in the foreground is stopped when it reads the terminal (pdb, input) or changes its settings, so ours is put into
// the foreground, as a shell does with its jobs. Then Ctrl-C and Ctrl-Z reach the command directly, and the shell
// that started us must be told when the job stops: it watches our group, not the command's.
//
// Not done: sharing one group with the command. Killing it would kill us, and every Ctrl-C would reach both.

package run

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal while datawait's group is its foreground; nil means that there is none.
type terminal struct {
	fd    int // our own descriptor of it
	group int // our own process group
}

// openTerminal returns the terminal if one of the files is it and datawait is in its foreground.
func openTerminal(files ...*os.File) *terminal {
	group := unix.Getpgrp()
	for _, f := range files {
		foreground, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
		if err == nil && foreground == group {
			return &terminal{fd: int(f.Fd()), group: group}
		}
	}
	return nil
}

// ignoreOutputStops lets datawait write to a terminal with `stty tostop` from the background. It must come after the
// command was started: ignored signals are inherited.
func (t *terminal) ignoreOutputStops() {
	if t != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// takeBack makes datawait's group the foreground again.
func (t *terminal) takeBack() {
	if t == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // a background group that sets the foreground is stopped otherwise
	t.give(t.group)
}

// release takes the terminal back for good, after the command.
func (t *terminal) release() {
	if t != nil {
		t.takeBack()
		signal.Reset(syscall.SIGTTOU)
	}
}

func (t *terminal) give(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }

// foreground returns the group in the foreground, 0 if the terminal is gone.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// suspend stops datawait's own group after the command was stopped (Ctrl-Z, or a read from the background), so that
// the shell takes over. When the shell continues us it continues the command, in the foreground if we are there.
func (t *terminal) suspend(job int) {
	if t == nil {
		return // not our doing: whoever stopped it will continue it
	}
	if t.foreground() == job {
		t.takeBack()
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond): // an orphaned group cannot be stopped: go on
	}
	signal.Stop(continued)
	if t.foreground() == t.group {
		t.give(job)
	}
	_ = syscall.Kill(-job, syscall.SIGCONT)
}

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Reasons a command cannot be started; [StatusOf] gives their exit statuses.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("not executable")
)

// Command is what to start. The three files are handed over as they are: nothing is copied or buffered.
type Command struct {
	Argv                  []string
	Env                   []string
	Stdin, Stdout, Stderr *os.File
}

// Job is a started command with its process group.
type Job struct {
	pid      int // also its process group
	terminal *terminal
	killing  atomic.Bool
	done     chan struct{}
	exit     Exit // valid once done is closed
}

// Start runs the command in a process group of its own, in the terminal's foreground if datawait's group was there.
// From here on datawait adopts orphans of the job, so that they stay in its process tree.
func Start(c Command) (*Job, error) {
	path, err := find(c.Argv[0])
	if err != nil {
		return nil, err
	}
	j := &Job{terminal: openTerminal(c.Stdin, c.Stdout, c.Stderr), done: make(chan struct{})}
	adoptOrphans()
	attr := &syscall.ProcAttr{
		Env:   c.Env,
		Files: []uintptr{c.Stdin.Fd(), c.Stdout.Fd(), c.Stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	if j.terminal != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, j.terminal.fd
	}
	j.pid, err = syscall.ForkExec(path, c.Argv, attr)
	runtime.KeepAlive(c)
	if err != nil {
		j.terminal.release()
		return nil, startError(c.Argv[0], err)
	}
	j.terminal.ignoreOutputStops()
	go j.wait()
	reaper.Do(func() { go reapOrphans() })
	return j, nil
}

// find resolves a command as a shell would and tells what is wrong with it otherwise.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) { // found through "." in PATH: what a shell would run
		return path, nil
	}
	return path, startError(name, err)
}

func startError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("running %s: %w", name, ErrNotFound)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("running %s: %w", name, ErrNotExecutable)
	}
	return fmt.Errorf("running %s: %w", name, err)
}

// StatusOf returns the exit status for an error of [Start] or [Exec]: 127, 126 or 125.
func StatusOf(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return StatusNotFound
	case errors.Is(err, ErrNotExecutable):
		return StatusNotExecutable
	}
	return StatusOwnFailure
}

// Exec replaces datawait by the command: what a wrapper does when another one on this node already observes. It
// returns only on failure.
func Exec(argv, env []string) error {
	path, err := find(argv[0])
	if err != nil {
		return err
	}
	return startError(argv[0], syscall.Exec(path, argv, env))
}

// PID returns the command's process id, which is its process group too.
func (j *Job) PID() int { return j.pid }

// Done is closed when the command has ended; descendants may live on.
func (j *Job) Done() <-chan struct{} { return j.done }

// Exit waits for the command and returns how it ended.
func (j *Job) Exit() Exit {
	<-j.done
	return j.exit
}

// Forward sends one signal to the command alone, as its sender would have without datawait. To a command that has ended it
// sends nothing: its number may be another process's by now.
func (j *Job) Forward(sig syscall.Signal) {
	if !j.hasEnded() {
		_ = syscall.Kill(j.pid, sig)
	}
}

// Interrupt sends SIGINT to the whole process group, as a terminal does on Ctrl-C.
func (j *Job) Interrupt() { _ = syscall.Kill(-j.pid, syscall.SIGINT) }

func (j *Job) hasEnded() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// wait follows the command through stops to its end. It waits for this one process, so it steals no status from
// others that start children in this program.
func (j *Job) wait() {
	defer close(j.done)
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(j.pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // somebody else waited for it: its fate is lost
			j.exit = Exit{Code: StatusOwnFailure}
			j.terminal.release()
			return
		case !ws.Stopped():
			j.exit = exitOf(ws)
			j.terminal.release()
			return
		case !j.killing.Load():
			j.terminal.suspend(j.pid)
		}
	}
}

// Check tells whether a command can be started at all, before anything is made for its sake.
func Check(name string) error {
	_, err := find(name)
	return err
}

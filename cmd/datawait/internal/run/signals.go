package run

import (
	"os"
	"os/signal"
	"syscall"
)

// Forwarded are the signals that are passed on to the command.
var Forwarded = []os.Signal{syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP}

// Signals delivers SIGINT and the forwarded signals until stop is called. What was ignored when datawait started
// (nohup, background jobs of a script) stays ignored, for datawait and for the command.
func Signals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 16)
	for _, s := range append([]os.Signal{syscall.SIGINT}, Forwarded...) {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	stopPipes := survivePipes()
	return c, func() { signal.Stop(c); stopPipes() }
}

// Deliver lets the signals act on this process that came in before their delivery was stopped.
func Deliver(signals <-chan os.Signal) {
	for {
		select {
		case sig := <-signals:
			_ = syscall.Kill(os.Getpid(), sig.(syscall.Signal))
		default:
			return
		}
	}
}

// survivePipes keeps datawait alive when who reads its own talk goes away (`2>&1 | head`): Go ends a program at such a
// write unless SIGPIPE is asked for, and the command would go on with nobody to finish its recording or pass its status on.
// The signal is caught, not ignored, for an ignored one is handed down to the command.
func survivePipes() (stop func()) {
	if signal.Ignored(syscall.SIGPIPE) {
		return func() {}
	}
	pipes := make(chan os.Signal, 1) // nobody reads it: the write fails as well, and that is enough
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

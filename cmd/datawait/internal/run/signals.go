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
	return c, func() { signal.Stop(c) }
}

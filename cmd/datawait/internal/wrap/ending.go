package wrap

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// ended says how a run came to its end.
type ended struct {
	by       string // recording.EndedBy…
	exit     run.Exit
	known    bool      // exit is
	deadline time.Time // datawait must be gone by then; zero = it has all the time
	stopped  bool      // a person wants datawait to stop at once

	interrupts int // Ctrl-C so far
}

// status is what datawait exits with before its own findings count.
func (e ended) status() int {
	switch {
	case e.by == recording.EndedByDatawait:
		return 0
	case e.known:
		return e.exit.Status()
	}
	return run.StatusOwnFailure
}

func (e ended) exitCode() unit.Maybe[int] {
	if e.exit.Signal != 0 {
		return unit.None[int]("a signal ended the command")
	}
	return unit.Some(e.exit.Code)
}

func (e ended) signal() unit.Maybe[string] {
	if e.exit.Signal == 0 {
		return unit.None[string]("the command exited")
	}
	return unit.Some(unix.SignalName(e.exit.Signal))
}

// watch follows the command to its end: it passes signals on, and ends the run when the agent says that it is over.
//
//	Ctrl-C once     the command is interrupted as ever, and the report is made; twice: everything ends now
//	SIGTERM         is passed on; the recording is finished within the grace, whatever the command does
//	USR1, USR2, HUP are passed on
func (s *session) watch(signals <-chan os.Signal) ended {
	e := ended{by: recording.EndedByCommand}
	var grace <-chan time.Time
	for {
		select {
		case <-s.job.Done():
			e.exit, e.known = s.job.Exit(), true
			s.awaitRanks(&e, signals)
			return e
		case why := <-s.agent.over:
			s.say(why)
			s.agent.endJob(s.job)
			e.by, e.exit, e.known = recording.EndedByDatawait, s.job.Exit(), true
			return e
		case <-grace: // the command takes longer than datawait has: save what there is
			return e
		case <-s.ctx.Done():
			s.job.Kill()
			e.by, e.exit, e.known, e.stopped = recording.EndedBySignal, s.job.Exit(), true, true
			return e
		case sig := <-signals:
			switch sig {
			case syscall.SIGINT:
				e.by = recording.EndedBySignal
				if e.interrupts++; e.interrupts > 1 {
					s.job.Kill()
					e.exit, e.known, e.stopped = s.job.Exit(), true, true
					return e
				}
				s.job.Interrupt()
			case syscall.SIGTERM:
				e.by = recording.EndedBySignal
				if grace == nil {
					e.deadline = time.Now().Add(s.options.Grace)
					grace = time.After(s.options.Grace * 3 / 5)
				}
				s.job.Forward(syscall.SIGTERM)
			default:
				s.job.Forward(sig.(syscall.Signal))
			}
		}
	}
}

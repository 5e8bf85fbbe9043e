package wrap

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/recording"
)

// endJob ends the command and every training process on this node at once. Nothing of the job can react: no "save the
// final model" runs. What the rings hold is drained afterwards; they are files.
func (a *agent) endJob(j *run.Job) {
	j.Kill()
	ranks := a.crew().ranks
	for _, r := range ranks {
		run.KillProcess(r.pid, r.start)
	}
	<-j.Done()
	for until := time.Now().Add(time.Second); time.Now().Before(until) && slices.ContainsFunc(ranks, rank.lives); {
		time.Sleep(time.Millisecond) // what is being killed is not to be told as running
	}
}

func (r rank) lives() bool { return run.StartTicks(r.pid) == r.start && !run.IsZombie(r.pid) }

const (
	// lastRanks is how long training processes are followed that outlive the command: other wrappers' ranks end a moment
	// before or after it.
	lastRanks = 3 * time.Second
	// restingRanks is how long ranks of other wrappers may make no step before they are not waited for any more: the last
	// one may save a model.
	restingRanks = 30 * time.Second
)

// awaitRanks follows training processes that outlive the command of this wrapper, which observes for the wrappers of all
// ranks. The launcher waits for every rank anyway; only of a failure it must hear soon, for then it ends the others.
func (s *session) awaitRanks(e *ended, signals <-chan os.Signal) {
	w := rankWatch{ended: time.Now(), succeeded: e.exit.Status() == 0, own: run.Family(os.Getpid())}
	for {
		c := s.agent.crew()
		if len(c.ranks) == 0 || !w.waits(time.Now(), c, e.deadline) {
			s.tellLeft(c)
			return
		}
		select {
		case <-time.After(s.agent.pace.view / 3):
		case why := <-s.agent.over:
			s.say(why)
			s.agent.endJob(s.job)
			e.by = recording.EndedByDatawait
			return
		case sig := <-signals:
			switch sig {
			case syscall.SIGINT:
				e.by = recording.EndedBySignal
				e.interrupts++
				s.tellLeft(c)
				return
			case syscall.SIGTERM:
				if e.by = recording.EndedBySignal; e.deadline.IsZero() {
					e.deadline = time.Now().Add(s.options.Grace)
				}
			}
		}
	}
}

// tellLeft says of ranks that go on unobserved that they do.
func (s *session) tellLeft(c crew) {
	if n := len(c.ranks); n > 0 {
		s.say(fmt.Sprintf("the command has ended and %d of the job's processes still train; they are not observed any further", n))
	}
}

// rankWatch decides how long ranks that outlive the command are followed.
type rankWatch struct {
	ended     time.Time // when the command had ended
	succeeded bool
	own       func(pid int) bool // of this wrapper, not of another one

	steps uint64
	moved time.Time // when the last step was seen
}

func (w *rankWatch) waits(now time.Time, c crew, deadline time.Time) bool {
	if c.steps != w.steps || w.moved.IsZero() {
		w.steps, w.moved = c.steps, now
	}
	switch {
	case !deadline.IsZero() && now.After(deadline.Add(-lastRanks)):
		return false
	case now.Sub(w.ended) < lastRanks:
		return true
	}
	others := slices.ContainsFunc(c.ranks, func(r rank) bool { return !w.own(r.pid) })
	return w.succeeded && others && now.Sub(w.moved) < restingRanks
}

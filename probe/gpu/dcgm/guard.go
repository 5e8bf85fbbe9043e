package dcgm

import (
	"errors"
	"time"
)

// errHung means that the engine has not answered in time. The call goes on: nothing can end it.
var errHung = errors.New("the host engine does not answer")

// guard makes calls into the library one at a time, and does not wait for one that hangs. go-dcgm sets no time-out of its own, and a
// call to an engine that is stopped takes a minute.
type guard struct {
	patience time.Duration
	stuck    chan struct{} // closed when the call that hung has returned; nil = none hangs
}

// do makes the call, or says that an earlier one still hangs. After a call that hung and came back, recovered is true once: what was
// asked of the engine before may be lost.
func (g *guard) do(call func() error) (err error, recovered bool) {
	if g.stuck != nil {
		select {
		case <-g.stuck:
			g.stuck = nil
			return nil, true
		default:
			return errHung, false
		}
	}
	done := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done <- call()
	}()
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err, false
	case <-timer.C:
		g.stuck = ended
		return errHung, false
	}
}

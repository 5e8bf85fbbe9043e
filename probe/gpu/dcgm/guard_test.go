package dcgm

import (
	"errors"
	"testing"
	"time"
)

func TestACallThatHangsIsWaitedForOnceAndNotCalledTwice(t *testing.T) {
	g := guard{patience: time.Millisecond}
	release, begun := make(chan struct{}), make(chan struct{}, 9)
	hangs := func() error { begun <- struct{}{}; <-release; return errors.New("late") }
	for range 3 {
		if err, recovered := g.do(hangs); !errors.Is(err, errHung) || recovered {
			t.Fatalf("%v, %v", err, recovered)
		}
	}
	g.patience = time.Minute // by now nothing waits for the one that hangs
	if err, _ := g.do(hangs); !errors.Is(err, errHung) {
		t.Error(err)
	}
	if <-begun; len(begun) > 0 {
		t.Errorf("called %d times", 1+len(begun))
	}
	close(release)
	<-g.stuck
	if err, recovered := g.do(hangs); err != nil || !recovered {
		t.Errorf("%v, %v: what was asked for before may be lost, and nobody is told", err, recovered)
	}
	if err, recovered := g.do(func() error { return nil }); err != nil || recovered {
		t.Errorf("%v, %v", err, recovered)
	}
}

package alloc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// script is a teller whose looks are written down beforehand; the last goes on.
type script struct {
	mu    sync.Mutex
	looks []func(context.Context) (claims, error)
}

func (s *script) by() string { return "script" }

func (s *script) look(ctx context.Context, _ View) (claims, error) {
	s.mu.Lock()
	one := s.looks[0]
	if len(s.looks) > 1 {
		s.looks = s.looks[1:]
	}
	s.mu.Unlock()
	return one(ctx)
}

func says(pairs ...string) func(context.Context) (claims, error) {
	return func(context.Context) (claims, error) {
		c := claims{}
		for _, p := range pairs {
			if uuid, job, held := strings.Cut(p, "="); held {
				c.add(uuid, recording.Holder{Job: job}, "")
			} else {
				c.free(uuid)
			}
		}
		return c, nil
	}
}

func absent(context.Context) (claims, error) { return nil, nil }

// notebook keeps notes as text: "a=5", "a free", "a ?".
type notebook struct{ lines []string }

func (n *notebook) Note(note recording.Note) error {
	a := note.(recording.AllocationNote)
	if a.Since > a.T || a.By != "script" {
		return fmt.Errorf("%+v", a)
	}
	line := a.UUID + " ?"
	if a.Holders != nil {
		line = a.UUID + " free"
	}
	if len(a.Holders) > 0 {
		line = a.UUID + "=" + a.Holders[0].Job
	}
	n.lines = append(n.lines, line)
	return nil
}

// settled lets looks happen one after the other, and returns what was noted.
func settled(t *testing.T, looks ...func(context.Context) (claims, error)) []string {
	t.Helper()
	a := &asked{teller: &script{}, told: map[string]*claim{}}
	n := &notebook{}
	for i, look := range looks {
		c, err := look(context.Background())
		c.sort()
		begin := uint64(i+1) * 10
		if err := a.settle(answer{begin, begin + 1, c, err}, 30, n); err != nil {
			t.Fatal(err)
		}
		if c != nil && a.last != begin {
			t.Errorf("the last look was at %d", a.last)
		}
	}
	return n.lines
}

func TestOnlyWhatChangesIsNoted(t *testing.T) {
	got := settled(t, says("a=1", "b"), says("a=1", "b"), says("a=1", "b=2"), says("a", "b=2"), says("b=2"), says("b=2"))
	if text := strings.Join(got, ", "); text != "a=1, b free, b=2, a free, a ?" {
		t.Error(text)
	}
}

func TestATellerThatFallsSilentIsGivenTime(t *testing.T) {
	broken := func(context.Context) (claims, error) { return nil, errors.New("restarting") }
	if text := strings.Join(settled(t, says("a=1"), broken, broken, says("a=1")), ", "); text != "a=1" {
		t.Errorf("a short silence: %s", text)
	}
	if text := strings.Join(settled(t, says("a=1"), broken, absent, broken, broken, broken, says("a=1")), ", "); text != "a=1, a ?, a=1" {
		t.Errorf("a long silence: %s", text)
	}
}

func TestWithoutATellerNothingIsNotedAndNothingIsWrong(t *testing.T) {
	if got := settled(t, absent, absent); got != nil {
		t.Error(got)
	}
}

// Whatever a teller does, Poll comes back at once.
func TestALookThatHangsHoldsUpNobody(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	stuck := &script{looks: []func(context.Context) (claims, error){func(context.Context) (claims, error) { <-hang; return nil, nil }}}
	wild := &script{looks: []func(context.Context) (claims, error){func(context.Context) (claims, error) { panic("a stranger's text") }}}
	fine := &script{looks: []func(context.Context) (claims, error){says("a=1")}}
	w := start(context.Background(), Options{Every: time.Millisecond, Deadline: time.Millisecond}.complete(), stuck, wild, fine)
	defer w.Stop()
	n := &notebook{}
	var err error
	for range 2000 {
		if err = w.Poll(w.options.Now(), n); err != nil && len(n.lines) > 0 && strings.Contains(err.Error(), "does not come back") && strings.Contains(err.Error(), "panic") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if strings.Join(n.lines, ", ") != "a=1" || err == nil || !strings.Contains(err.Error(), "does not come back") || !strings.Contains(err.Error(), "panic: a stranger's text") {
		t.Errorf("%v; %v", n.lines, err)
	}
}

func TestWhatASourceSeesNewWakesTheTellers(t *testing.T) {
	seen := make(chan View, 10)
	w := start(context.Background(), Options{Every: time.Hour}.complete(), viewer{seen})
	defer w.Stop()
	<-seen
	w.See(View{Running: map[string][]int{"a": {1}}})
	select {
	case v := <-seen:
		if len(v.Running["a"]) != 1 {
			t.Errorf("%+v", v)
		}
	case <-time.After(20 * time.Second):
		t.Error("it was not looked again")
	}
}

type viewer struct{ seen chan View }

func (v viewer) by() string { return "script" }

func (v viewer) look(_ context.Context, view View) (claims, error) {
	v.seen <- view
	return nil, nil
}

func TestTheExportersVariablesAreUnderstood(t *testing.T) {
	o := Options{Env: environ(KubeletVariable+"=/k.sock", MappingVariable+"=/jobs")}.complete()
	if o.Kubelet != "/k.sock" || o.Mapping != "/jobs" {
		t.Errorf("%+v", o)
	}
	if o := (Options{Env: environ()}).complete(); o.Kubelet != DefaultKubelet || o.Mapping != "" {
		t.Errorf("%+v", o)
	}
}

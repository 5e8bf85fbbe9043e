// Package alloc finds out to whom the GPUs of this machine are assigned: a pod, a Slurm job, or, for want of a scheduler that tells, the
// processes that have a context on them.
//
// It decides who is asked and what an answer means, GPU by GPU. What nobody tells stays unknown: a GPU without a claim is not free. What
// a job asks to see (CUDA_VISIBLE_DEVICES) is no assignment and is not looked at. A GPU that several share is one GPU with several
// holders, and how much of it each has is refused to be known. Each teller speaks for itself; where two contradict each other a reader
// of the recording sees both.
//
// Asking may block (a kubelet that hangs, a folder on a file system that is gone), so every teller has a goroutine of its own and a
// deadline. The sampling loop only collects, and never waits: see [Watch.Poll]. All that tellers say is another program's text and
// bounded, cleaned and counted at the door.
//
// Read [Watch] and [View] first.
package alloc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// Options say where to look. The zero Options are this machine's.
type Options struct {
	Kubelet  string        // socket; "" = as dcgm-exporter is told, else DefaultKubelet
	Mapping  string        // folder of a job mapping; "" = as dcgm-exporter is told, else none
	Every    time.Duration // between two looks; 0 = 10 s
	Deadline time.Duration // of one look; 0 = 5 s

	Env   func(string) string // of this process; nil = os.Getenv
	Proc  string              // stands for /proc; "" = /proc
	Alive func(pid int) bool  // nil = ask the kernel
	Now   func() uint64       // CLOCK_MONOTONIC, ns; nil = the clock
}

// Where dcgm-exporter is told the same things (dcgm-exporter, pkg/cmd/app.go): a machine set up for it needs no second setting.
const (
	KubeletVariable = "DCGM_POD_RESOURCES_KUBELET_SOCKET"
	MappingVariable = "DCGM_HPC_JOB_MAPPING_DIR"
)

func (o Options) complete() Options {
	if o.Env == nil {
		o.Env = environment
	}
	if o.Now == nil {
		o.Now = clock.Mono
	}
	if o.Alive == nil {
		o.Alive = runs
	}
	o.Kubelet = cmp.Or(o.Kubelet, o.Env(KubeletVariable), DefaultKubelet)
	o.Mapping = cmp.Or(o.Mapping, o.Env(MappingVariable))
	o.Proc = cmp.Or(o.Proc, "/proc")
	o.Every = cmp.Or(o.Every, 10*time.Second)
	o.Deadline = cmp.Or(o.Deadline, 5*time.Second)
	return o
}

// View is what GPU sources have told so far. Tellers that count GPUs, or know of processes alone, need it.
type View struct {
	GPUs    []recording.GPUNote
	Running map[string][]int // pids of the processes on a GPU at the last look at it, by UUID
}

// teller is somebody who knows to whom GPUs are assigned. A look that finds nobody to ask returns nil claims and no error; one that was
// answered returns claims, though there be none; with an error it may return what was understood all the same.
type teller interface {
	by() string
	look(ctx context.Context, v View) (claims, error)
}

// Watch asks all tellers again and again. Its methods are for one goroutine.
type Watch struct {
	options Options
	asked   []*asked
	stop    context.CancelFunc

	mu   sync.Mutex
	view View
}

// asked is one teller, and what it said.
type asked struct {
	teller
	wake chan struct{}

	mu     sync.Mutex
	began  uint64 // ns, of the look that goes on, 0 = none does
	latest *answer

	told map[string]*claim // as the recording has it
	last uint64            // ns, begin of the last look that was answered; 0 = none was
	dumb uint64            // ns, end of the first look without an answer since; 0 = the last one was answered
	why  error
}

// answer is the outcome of one look.
type answer struct {
	begin, end uint64 // ns
	claims     claims
	err        error
}

// Start begins to look. It returns at once.
func Start(ctx context.Context, o Options) *Watch {
	o = o.complete()
	return start(ctx, o, &kubernetes{socket: o.Kubelet, numberer: numberer{proc: o.Proc}}, &slurm{folder: o.Mapping, env: o.Env, numberer: numberer{proc: o.Proc}},
		&processes{proc: o.Proc, pods: podLogs, alive: o.Alive})
}

func start(ctx context.Context, o Options, tellers ...teller) *Watch {
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{options: o, stop: stop}
	for _, t := range tellers {
		a := &asked{teller: t, wake: make(chan struct{}, 1), told: map[string]*claim{}}
		w.asked = append(w.asked, a)
		go w.ask(ctx, a)
	}
	return w
}

// Stop ends the looking. A look that hangs is not waited for.
func (w *Watch) Stop() { w.stop() }

// See takes what GPU sources have told by now, and lets the tellers look again.
func (w *Watch) See(v View) {
	v = View{slices.Clone(v.GPUs), maps.Clone(v.Running)}
	w.mu.Lock()
	w.view = v
	w.mu.Unlock()
	for _, a := range w.asked {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// shortest is between two looks, however often there is something new.
const shortest = time.Second

// ask is a teller's goroutine.
func (w *Watch) ask(ctx context.Context, a *asked) {
	for ctx.Err() == nil {
		w.once(ctx, a)
		sleep(ctx, min(shortest, w.options.Every), nil)
		sleep(ctx, w.options.Every-min(shortest, w.options.Every), a.wake)
	}
}

func (w *Watch) once(ctx context.Context, a *asked) {
	w.mu.Lock()
	view := w.view
	w.mu.Unlock()
	begin := w.options.Now()
	a.mu.Lock()
	a.began = max(begin, 1)
	a.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, w.options.Deadline)
	defer cancel()
	c, err := safely(func() (claims, error) { return a.look(limited, view) })
	c.sort()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = 0
	if ctx.Err() == nil {
		a.latest = &answer{begin, w.options.Now(), c, err}
	}
}

// safely turns a panic into an error: what a stranger wrote must not end the job's wrapper.
func safely(look func() (claims, error)) (c claims, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return look()
}

func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// Noter takes notes: a recording.Appender.
type Noter interface{ Note(recording.Note) error }

// maxNotes bounds what one Poll writes of one teller. The rest follows.
const maxNotes = 256

// Poll writes what has changed since the last time, and waits for nobody. The error says who gave no answer, and why.
func (w *Watch) Poll(now uint64, out Noter) error {
	var errs []error
	for _, a := range w.asked {
		answer, late := a.take(now, 3*w.options.Deadline)
		if answer != nil {
			if err := a.settle(*answer, w.patience(), out); err != nil {
				return err
			}
		}
		if late {
			errs = append(errs, fmt.Errorf("finding out who holds the GPUs (%s): the look that was begun does not come back", a.by()))
			continue
		}
		errs = append(errs, a.why)
	}
	return errors.Join(errs...)
}

// patience is for how long what was told stands although nobody tells it any more: a kubelet is restarted now and then.
func (w *Watch) patience() uint64 { return uint64(3 * w.options.Every) }

func (a *asked) take(now uint64, limit time.Duration) (answered *answer, late bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answered, a.latest = a.latest, nil
	return answered, a.began != 0 && now > a.began+uint64(limit)
}

// settle writes what one look changed. What is said of a GPU no longer is not known any more; a teller that falls silent is given time.
func (a *asked) settle(now answer, patience uint64, out Noter) error {
	a.why = now.err
	if now.claims == nil {
		if a.dumb == 0 {
			a.dumb = now.end
		}
		if now.end < a.dumb+patience {
			return nil
		}
	} else {
		a.dumb = 0
	}
	written := 0
	for _, uuid := range a.changed(now.claims) {
		if written++; written > maxNotes {
			break
		}
		if err := out.Note(a.note(uuid, now)); err != nil {
			return fmt.Errorf("writing who holds a GPU: %w", err)
		}
		if a.told[uuid] = now.claims[uuid]; a.told[uuid] == nil {
			delete(a.told, uuid)
		}
	}
	if now.claims != nil && written <= maxNotes {
		a.last = now.begin
	}
	return nil
}

// changed lists the GPUs of which something else is said than the recording has.
func (a *asked) changed(c claims) (uuids []string) {
	for uuid, one := range c {
		if !one.same(a.told[uuid]) {
			uuids = append(uuids, uuid)
		}
	}
	for uuid := range a.told {
		if c[uuid] == nil {
			uuids = append(uuids, uuid)
		}
	}
	slices.Sort(uuids)
	return uuids
}

func (a *asked) note(uuid string, now answer) recording.AllocationNote {
	note := recording.AllocationNote{T: now.end, Since: cmp.Or(a.last, now.begin), UUID: uuid, By: a.by()}
	if one := now.claims[uuid]; one != nil {
		note.Holders, note.Shared = append([]recording.Holder{}, one.holders...), one.shared
	}
	return note
}

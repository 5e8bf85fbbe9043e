// Package sampler runs several probes from one loop, each at its own pace, and testifies about them: how often each ran, how
// late, with what success and at what cost.
//
// Everything happens on one goroutine: probes run one after the other, and whatever arrives by itself, like the records of the
// GPU child, is brought there by [Sampler.Submit]. So a recording.Sink never needs a lock. A probe that fails or panics is a
// health record and a reason in a note, never the end of the loop. A probe that is late skips ticks and keeps its grid; ticks
// never bunch up. A probe must not block: the loop has no second thread to save the others with.
//
// Read [Probe] and [Sampler.Run] first.
package sampler

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// HealthEvery is how often the health of every source is recorded.
const HealthEvery = 5 * time.Second

// retryUnsupported is how long a probe rests after saying that this machine cannot give what it measures. A module may be
// loaded, a permission granted.
const retryUnsupported = time.Minute

// Probe is something that is sampled at a steady pace.
type Probe struct {
	Name  string
	Every time.Duration
	// Run takes one sample at the time now (CLOCK_MONOTONIC in ns) and writes what it saw to its own stream. An error that
	// is errors.ErrUnsupported says that this machine has nothing to measure: no failure, and tried again seldom.
	Run func(ctx context.Context, now uint64) error
	// Hurries, if not nil, is asked after each run: while it reports true the probe runs [hurry] times as often.
	Hurries func() bool
}

// hurry is how many times as often a probe runs that has more to take than it comes to take.
const hurry = 8

// Clock is the time a Sampler lives by. The zero Clock is the machine's.
type Clock struct {
	Now       func() uint64 // CLOCK_MONOTONIC in ns
	ThreadCPU func() uint64 // CPU time of the calling thread in ns
}

func (c Clock) orMachine() Clock {
	if c.Now == nil {
		c.Now = clock.Mono
	}
	if c.ThreadCPU == nil {
		c.ThreadCPU = clock.ThreadCPU
	}
	return c
}

// Sampler runs probes. All its methods but Submit and Health are for the goroutine that calls Run, before Run or from a
// probe or a submitted function.
type Sampler struct {
	clock   Clock
	out     *recording.Appender
	sources []*source
	refs    uint16
	free    map[string][]uint16 // refs of sources that were removed, by name: one of that name takes it over
	jobs    chan func()
	ended   chan struct{}
	board   board
}

// New returns a sampler that writes the health of its sources to out.
func New(c Clock, out *recording.Appender) *Sampler {
	s := &Sampler{clock: c.orMachine(), out: out, free: map[string][]uint16{}, jobs: make(chan func()), ended: make(chan struct{})}
	s.add(&source{Probe: Probe{Name: "sampler", Every: HealthEvery, Run: s.testify}, quiet: true})
	return s
}

// Add lets a probe run from now on: for the first time as soon as the loop comes to it, in the order of Add. remove ends it.
func (s *Sampler) Add(p Probe) (remove func()) { return s.add(&source{Probe: p}) }

func (s *Sampler) add(src *source) (remove func()) {
	now := s.clock.Now()
	src.next, src.window.begin = now, now
	if src.quiet {
		src.next += uint64(src.Every)
	} else {
		src.ref = s.number(src.Name)
	}
	s.sources = append(s.sources, src)
	return func() { s.remove(src) }
}

// number returns the ref of a new source. Whoever remembers what a ref stands for remembers all that were ever given: sources that come and go
// for months take over those of their kind.
func (s *Sampler) number(name string) uint16 {
	if free := s.free[name]; len(free) > 0 {
		s.free[name] = free[:len(free)-1]
		return free[len(free)-1]
	}
	s.refs++
	return s.refs - 1
}

// remove writes the last health of a source and drops it.
func (s *Sampler) remove(src *source) {
	_ = s.testifyOf(src, s.clock.Now()) // a failing sink shows in the health of those that stay
	for i, other := range s.sources {
		if other == src {
			s.sources = append(s.sources[:i:i], s.sources[i+1:]...)
			if !src.quiet {
				s.free[src.Name] = append(s.free[src.Name], src.ref)
			}
			return
		}
	}
}

// ErrEnded is what Submit returns once Run has ended.
var ErrEnded = errors.New("the sampler has ended")

// Submit runs f on the loop's goroutine, where it may use the sink, and returns what f does. It may be called from any other
// goroutine, and waits for the loop: a source that delivers faster than its records can be written is slowed down.
func (s *Sampler) Submit(ctx context.Context, f func() error) error {
	result := make(chan error, 1)
	select {
	case s.jobs <- func() { result <- guard(f) }:
		return <-result
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return ErrEnded
	}
}

// Run samples until ctx ends. Then every probe runs once more, so that the time since its last tick is not lost, and the
// health of all sources is written. What delivers by Submit should be stopped before.
func (s *Sampler) Run(ctx context.Context) {
	runtime.LockOSThread() // the CPU time of a probe is this thread's
	defer runtime.UnlockOSThread()
	defer close(s.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.begin()
	for ctx.Err() == nil {
		src := s.due()
		if now := s.clock.Now(); now >= src.next {
			s.tick(ctx, src, now)
			s.accept()
			continue
		} else {
			timer.Reset(time.Duration(src.next - now))
		}
		select {
		case <-timer.C:
		case job := <-s.jobs:
			job()
		case <-ctx.Done():
		}
	}
	s.finish(context.WithoutCancel(ctx))
}

// begin lets time count from now for what was added before.
func (s *Sampler) begin() {
	now := s.clock.Now()
	for _, src := range s.sources {
		src.window.begin = now
		if src.next < now {
			src.next = now
		}
	}
}

// accept runs one submitted function, if one waits: a loop that is always behind must still take deliveries.
func (s *Sampler) accept() bool {
	select {
	case job := <-s.jobs:
		job()
		return true
	default:
		return false
	}
}

// due returns the source whose turn is next; of several, the one added first.
func (s *Sampler) due() *source {
	first := s.sources[0]
	for _, src := range s.sources[1:] {
		if src.next < first.next || src.next == first.next && first.quiet {
			first = src
		}
	}
	return first
}

// tick runs a probe and sets its next turn on its grid, past the ticks that went by meanwhile.
func (s *Sampler) tick(ctx context.Context, src *source, now uint64) {
	end := s.sample(ctx, src, now)
	every := max(src.pace(), 1)
	src.next += every
	if src.state == unsupported {
		src.next += uint64(retryUnsupported) / every * every
	}
	if src.next <= end {
		skipped := (end-src.next)/every + 1
		src.next += skipped * every
		src.skipped += skipped
	}
	s.board.post(src)
}

// sample runs a probe and takes note of how that went; it returns the time it ended.
func (s *Sampler) sample(ctx context.Context, src *source, now uint64) (end uint64) {
	cpu := s.clock.ThreadCPU()
	err := guard(func() error { return src.Run(ctx, now) })
	cpu = s.clock.ThreadCPU() - cpu
	end = s.clock.Now()
	late := now - min(now, src.next)
	src.took(outcome{err: err, late: late, cpu: cpu, duration: end - now, at: end})
	return end
}

// finish takes a last sample of everything, and writes what is left to write.
func (s *Sampler) finish(ctx context.Context) {
	for _, src := range s.sources {
		if !src.quiet && src.usage == nil && src.state != unsupported {
			s.sample(ctx, src, s.clock.Now())
			s.board.post(src)
		}
	}
	for s.accept() {
	}
	_ = s.testify(ctx, s.clock.Now()) // there is nobody left to tell
}

package wrap

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpuwatch"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// agent observes the job of one node: it drains the rings, samples host and GPU, conducts the test, and writes all of it
// into the recording. Everything between start and finish happens in one goroutine, because a sink belongs to one.
type agent struct {
	session *session
	writer  *recording.Writer
	tap     *tap
	own     *recording.Appender // the agent's stream
	drainer *spool.Drainer
	page    *recording.ControlWriter
	test    *conductor // nil when this run is only observed
	pace    pace
	machine *host.Host
	pythons *pythons
	gpu     *gpuwatch.Watch
	holders holders
	said    map[string]bool // sentences told once

	heldTold   int    // children held before a save that the recording knows
	trained    bool   // a step was seen
	unfedSince uint64 // ns, when steps without a fetch were seen first; 0 = never

	showAt  uint64                  // ns, when progress is shown next
	flushAt uint64                  // ns, when the recording is written next
	lookAt  uint64                  // ns, when Pythons are looked for next
	began   uint64                  // CLOCK_MONOTONIC at the start of the command
	started uint64                  // start of the command in clock ticks since boot
	job     atomic.Pointer[run.Job] // the command, once it runs
	ranks   atomic.Pointer[crew]    // training processes seen last
	over    chan string             // the run may be ended; a sentence, or ""
	out     string                  // of the recording
	answer  chan []recording.Trial  // which loaders to try; nil until that is asked

	stop context.CancelFunc
	loop sync.WaitGroup
}

// crew is the training processes that run, and what they have done so far.
type crew struct {
	ranks []rank
	steps uint64 // of all together
}

// rank names a training process for good.
type rank struct {
	pid   int
	start uint64 // clock ticks since boot
}

// startAgent prepares everything that does not need the command yet, so that nothing is missed of it.
func startAgent(s *session, out string) (*agent, error) {
	a := &agent{session: s, pace: paceOf(s.options), pythons: newPythons(s.folder.Dir, s.hook), said: map[string]bool{}, over: make(chan string, 1), out: out}
	var err error
	if a.writer, err = recording.Create(out, s.manifest(), recording.Options{}); err != nil {
		return nil, err
	}
	a.tap = newTap(a.writer)
	if err := a.declare(); err != nil {
		return nil, errors.Join(err, a.abandon())
	}
	if a.page, err = recording.CreateControl(s.folder.Dir, uint32(os.Getpid())); err != nil {
		return nil, errors.Join(err, a.abandon())
	}
	a.gpu = gpuwatch.New(gpuwatch.Options{GPU: s.options.GPU, Interval: s.options.Interval, Dir: s.folder.Dir, Declaration: a.declaration(), Since: clock.Mono()})
	a.drainer = spool.Watch(s.folder.Dir, a.tap, spool.Options{Remove: true, Below: true})
	if s.options.Test {
		a.test = newConductor(s.planOptions(), a.page, a.tap)
	}
	return a, nil
}

// declaration describes this process as a stream.
func (a *agent) declaration() recording.Declaration {
	boot, _ := clock.BootID() // "" where it cannot be read: then other hosts' clocks are never mixed with ours
	return recording.Declaration{Producer: recording.ProducerAgent, Host: a.session.host, BootID: boot,
		PID: os.Getpid(), PPID: os.Getppid(), StartTicks: run.StartTicks(os.Getpid())}
}

// declare introduces the agent's own stream.
func (a *agent) declare() error {
	id, err := a.tap.Declare(a.declaration())
	if err != nil {
		return err
	}
	a.own = recording.NewAppender(a.tap, id)
	return a.pairClocks()
}

func (a *agent) pairClocks() error {
	mono, real := clock.Pair()
	return a.own.Note(recording.ClockNote{Monotonic: mono, Realtime: real})
}

// follow begins to observe the command that was just started.
func (a *agent) follow(j *run.Job) {
	a.started = run.StartTicks(j.PID())
	a.job.Store(j)
	a.began = clock.Mono()
	a.phase(a.began, "observe")
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.loop.Go(func() { a.sample(ctx) })
}

// abandon closes a recording whose command was never started.
func (a *agent) abandon() error {
	return a.writer.Close(recording.Ending{At: time.Now(), Monotonic: clock.Mono(), By: recording.EndedByDatawait})
}

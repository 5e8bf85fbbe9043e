package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/gpuwatch"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/cmd/datawait/internal/shelf"
	"github.com/datawait/datawait/probe/alloc"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu/served"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/sampler"
	"github.com/datawait/datawait/probe/spool"
)

// agent watches one machine. Everything happens in one goroutine ([agent.watch]), because a sink belongs to one; others see what it
// publishes.
type agent struct {
	options Options
	log     *slog.Logger
	host    string
	boot    string
	began   time.Time
	store   *store

	node    *live.Node
	shelf   *shelf.Shelf
	hub     *served.Hub
	wire    *wire // what the agent itself tells
	own     *recording.Appender
	yard    *spool.Yard
	pods    pods
	gpu     *gpuwatch.Watch
	holders *alloc.Watch
	machine *host.Host
	crews   map[live.Tenant]*crew
	known   map[recording.StreamID]member // processes with a ring
	sampler *sampler.Sampler

	snapshot atomic.Pointer[live.Snapshot]
	health   atomic.Pointer[health]
	came     atomic.Pointer[time.Time] // when the loop came round last
	troubles map[string]string
}

// newAgent prepares everything that can fail at once.
func newAgent(o Options) (*agent, error) {
	a := &agent{options: o, log: o.Log, began: time.Now(), pods: newPods(), crews: map[live.Tenant]*crew{}, known: map[recording.StreamID]member{}, troubles: map[string]string{}}
	var err error
	if a.host, err = os.Hostname(); err != nil {
		return nil, fmt.Errorf("asking for the host's name: %w", err)
	}
	a.boot, _ = clock.BootID() // "" where it cannot be read: then nothing is carried over
	if a.store, err = openStore(o.State); err != nil {
		return nil, err
	}
	if err := makeSpool(o.Spool); err != nil {
		return nil, errors.Join(err, a.store.close())
	}
	a.node = live.New(live.Options{Begin: clock.Mono(), Namespace: spool.Namespace(), Lag: uint64(o.pace.lag), Forget: uint64(o.Forget)})
	a.goOn()
	a.shelf = shelf.New(shelf.Options{Dir: a.store.path(shelf.Recordings), Slice: o.pace.slice, Keep: o.Keep, Host: a.host, BootID: a.boot, Version: o.Version}, a.node)
	a.hub = served.NewHub()
	a.wire = newWire(a.shelf.Over(a.node.Agent(), nil), a.hub, a.pods)
	id, err := a.wire.Declare(a.declaration())
	if err != nil {
		return nil, errors.Join(err, a.store.close())
	}
	a.own = recording.NewAppender(a.wire, id)
	a.sampler = sampler.New(sampler.Clock{}, a.own)
	a.yard, err = spool.OpenYard(o.Spool, spool.YardOptions{Sink: a.folder, Gone: a.pods.gone, Remove: true})
	if err != nil {
		return nil, errors.Join(err, a.store.close())
	}
	a.gpu = gpuwatch.New(gpuwatch.Options{GPU: o.GPU, Interval: o.Interval, Dir: o.Spool, Declaration: a.declaration(), Since: clock.Mono(), Own: true})
	return a, nil
}

// goOn restores what an earlier agent has counted.
func (a *agent) goOn() {
	s, err := a.store.read()
	if err == nil && s != nil {
		err = a.node.Restore(s, a.boot)
	}
	switch {
	case err != nil:
		a.log.Warn("counters begin at 0", "reason", err)
	case s != nil:
		a.log.Info("counters go on", "jobs", len(s.Jobs), "processes", len(s.Processes), "gpu tenancies", len(s.Tenancies))
	}
}

func (a *agent) declaration() recording.Declaration {
	return recording.Declaration{Producer: recording.ProducerAgent, Host: a.host, BootID: a.boot, PID: os.Getpid(), PPID: os.Getppid(),
		StartTicks: run.StartTicks(os.Getpid())}
}

// watch observes until ctx ends: the table of what this agent does.
func (a *agent) watch(ctx context.Context) {
	p := a.options.pace
	s := a.sampler
	s.Add(sampler.Probe{Name: "spool", Every: p.spool, Run: a.drain, Hurries: a.yard.Filling})
	if a.options.GPU.Kind != gpusource.None {
		s.Add(sampler.Probe{Name: "gpu", Every: min(p.spool, a.options.Interval), Run: a.watchGPU})
		a.holders = alloc.Start(ctx, alloc.Options{})
		s.Add(sampler.Probe{Name: "holders", Every: p.spool, Run: a.findHolders})
	}
	a.machine = host.New(a.own, host.Options{Job: a.processes, Self: os.Getpid(), Tick: p.host})
	for _, part := range a.machine.Parts() {
		if part.Name != limits {
			s.Add(sampler.Probe{Name: part.Name, Every: part.Every, Run: part.Run})
		}
	}
	s.Add(sampler.Probe{Name: "clock", Every: time.Minute, Run: a.pairClocks})
	s.Add(sampler.Probe{Name: "recordings", Every: p.publish, Run: a.file})
	s.Add(sampler.Probe{Name: "state", Every: p.publish, Run: a.publish})
	s.Run(ctx)
	a.finish()
}

// limits is what of a host is another thing for every job.
const limits = "host/limits"

// drain takes what the rings hold.
func (a *agent) drain(_ context.Context, now uint64) error {
	err := a.yard.Poll(now)
	for _, p := range a.yard.Live() {
		a.node.See(p.Stream, p.RingHeader)
	}
	counts := a.yard.Counts()
	if counts.Bad > 0 && counts.Refused == 0 && counts.Why != nil {
		a.trouble("rings", "some are not read: "+counts.Why.Error())
	}
	switch {
	case counts.Refused == 0 && a.troubles["spool folders"] != "":
		a.trouble("spool folders", "")
	case counts.Refused > 0:
		a.trouble("spool folders", fmt.Sprintf("%d are not followed: %v", counts.Refused, counts.Why))
	}
	return err
}

func (a *agent) watchGPU(ctx context.Context, _ uint64) error {
	if err := a.gpu.Poll(ctx, a.wire); err != nil {
		return err
	}
	return a.wire.gpu.problem(a.gpu, a.options)
}

func (a *agent) findHolders(_ context.Context, now uint64) error {
	if view, changed := a.wire.seen.View(); changed {
		a.holders.See(view)
	}
	return a.holders.Poll(now, a.own)
}

func (a *agent) pairClocks(context.Context, uint64) error {
	mono, real := clock.Pair()
	return a.own.Note(recording.ClockNote{Monotonic: mono, Realtime: real})
}

// file brings recordings onto the disk.
func (a *agent) file(context.Context, uint64) error { return a.shelf.Tick(time.Now()) }

// publish settles the books, keeps them, and only then shows them: see live.State.
func (a *agent) publish(_ context.Context, now uint64) error {
	a.node.Tick(now)
	a.followCrews()
	err := a.keep()
	a.removeEnded(err)
	a.snapshot.Store(a.node.Snapshot())
	a.health.Store(a.newHealth(now))
	a.tellTroubles()
	came := time.Now() // with its monotonic reading: a clock that is set does not make the loop look dead
	a.came.Store(&came)
	tellSystemd(daemon.SdNotifyWatchdog)
	return err
}

// removeEnded removes the rings that were read to their end, once that is in the state; or where no state is left that it could be missing
// from: on a full disk rings must not fill the memory they lie in.
func (a *agent) removeEnded(kept error) {
	if kept == nil || !a.store.there() {
		a.yard.RemoveEnded()
	}
}

func (a *agent) ticked() time.Time {
	if came := a.came.Load(); came != nil {
		return *came
	}
	return time.Time{}
}

func (a *agent) keep() error { return a.store.write(a.node.State(a.boot)) }

// finish takes what the rings and the GPU child hold at the end.
func (a *agent) finish() {
	now := clock.Mono()
	err := errors.Join(a.gpu.Finish(a.wire), a.yard.Poll(now))
	a.node.Tick(now)
	if err = errors.Join(err, a.shelf.Close()); err != nil {
		a.log.Warn("the end of what was watched is missing", "reason", err)
	}
}

func (a *agent) close() {
	if err := errors.Join(a.yard.Close(), a.store.close()); err != nil {
		a.log.Warn("closing", "reason", err)
	}
}

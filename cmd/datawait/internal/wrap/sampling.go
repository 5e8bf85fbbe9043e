package wrap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/sampler"
)

// pace is how often an agent looks. What is due together wakes it once.
type pace struct {
	view time.Duration // at the rings and at what the GPU child sent: they hold minutes, but a person and the planner wait for the view
	host time.Duration
}

// paceOf returns the pace of a run: of one that is tested the planner wants to know all at once, of one that is left running nobody does.
func paceOf(o Options) pace {
	if o.Test {
		return pace{view: 200 * time.Millisecond, host: 500 * time.Millisecond}
	}
	within := func(d, least, most time.Duration) time.Duration { return min(max(d, least), most) }
	return pace{view: within(o.Interval, 500*time.Millisecond, time.Second), host: within(10*o.Interval, time.Second, 10*time.Second)}
}

const (
	flushEvery = time.Second      // what a killed agent loses of a young run …
	flushMost  = 30 * time.Second // … and at most, of one that is old
	mostEnded  = 64               // rings that may lie in memory although they were read to their end: a MiB each
)

// sample observes until ctx is done: the table of what this agent does while the command runs.
func (a *agent) sample(ctx context.Context) {
	s := sampler.New(sampler.Clock{}, a.own)
	s.Watch("agent", false, ownUsage)
	s.Add(sampler.Probe{Name: "spool", Every: a.pace.view, Run: a.drain, Hurries: a.drainer.Filling})
	s.Add(sampler.Probe{Name: "gpu", Every: a.pace.view, Run: a.watchGPU})
	a.watchHolders(ctx)
	s.Add(sampler.Probe{Name: "holders", Every: a.pace.view, Run: a.findHolders}) // it only collects; looks are taken elsewhere, and seldom
	a.machine = host.New(a.own, host.Options{Job: a.jobProcesses, Self: os.Getpid(), Tick: a.pace.host})
	for _, part := range a.machine.Parts() {
		s.Add(sampler.Probe{Name: part.Name, Every: part.Every, Run: part.Run})
	}
	s.Add(sampler.Probe{Name: "pythons", Every: flushEvery, Run: a.lookForPythons})
	s.Add(sampler.Probe{Name: "clock", Every: time.Minute, Run: func(context.Context, uint64) error { return a.pairClocks() }})
	s.Add(sampler.Probe{Name: "recording", Every: flushEvery, Run: a.flush})
	s.Run(ctx)
}

// jobProcesses are the processes known to belong to the job: the command and every process with a ring.
func (a *agent) jobProcesses() []host.Known {
	a.tap.forgetEnded(func(p host.Known) bool { return run.StartTicks(p.PID) == p.StartTicks })
	known := append([]host.Known(nil), a.tap.processes...)
	if j := a.job.Load(); j != nil {
		known = append(known, host.Known{PID: j.PID(), StartTicks: a.started, Role: recording.RoleChild})
	}
	return known
}

// ownUsage is what this process costs.
func ownUsage() (cpu, rss uint64, err error) {
	cpu = clock.ProcessCPU()
	b, err := os.ReadFile("/proc/self/statm") // pages: size resident … (proc_pid_statm(5))
	if err != nil {
		return cpu, recording.Unknown64, err
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return cpu, recording.Unknown64, fmt.Errorf("reading /proc/self/statm: %q", b)
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return cpu, recording.Unknown64, err
	}
	return cpu, pages * uint64(os.Getpagesize()), nil
}

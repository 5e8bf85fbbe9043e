// Package host observes the machine a training job runs on and the job's processes: CPU, run queue, memory, limits of its
// control group, pressure, disks, network, and the bytes each worker receives over TCP.
//
// Reading is not parsing: file system roots are injected ([FS]), every parser takes bytes, is fuzzed and cites the kernel's own
// description of what it reads. What cannot be read is unknown (NaN, all bits set), never 0; the reason goes into the host note.
// Nothing here needs root. What another user's processes hide, what a sandbox does not implement and what lies outside a
// container's view is reported as such and not guessed: an unseen CPU quota leaves the usable cores unknown.
//
// Read [Host] and [Known] first. usable.go decides how many cores a loader can have.
package host

import (
	"context"
	"maps"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Options are what a Host needs to know.
type Options struct {
	FS      FS                          // the zero FS stands for Local()
	Now     func() uint64               // CLOCK_MONOTONIC in ns; nil = clock.Mono
	Job     func() []Known              // processes known to belong to the job, asked at every scan; nil = none
	Self    int                         // pid of the agent, which never counts to the job
	Sockets func() (SocketTable, error) // opens the table of TCP sockets; nil = OpenTCP
	Tick    time.Duration               // of the machine, its devices and limits; 0 = 1 s. Processes are read no more often than each second
}

// processTick is how often processes, their threads and their sockets are read: each costs a system call or three.
const processTick = time.Second

// Host takes samples of one machine and one job and writes them to one stream. It belongs to one goroutine.
//
// The job's limits and network are those of its first main process: processes of several containers are several jobs.
type Host struct {
	out   *recording.Appender
	files *files
	now   func() uint64
	tree  *tree
	tick  time.Duration

	note  recording.HostNote
	dirty bool // the note changed since it was written

	machine   machineProbe
	limits    limitsProbe
	pressure  pressureProbe
	devices   deviceBook
	processes processProbe
	sockets   socketProbe
}

// Part is one thing that is sampled by itself, so that its failure leaves the others alone.
type Part struct {
	Name  string                                      // "host/disks"
	Every time.Duration                               // between samples
	Run   func(ctx context.Context, now uint64) error // takes one sample; errors.ErrUnsupported: not to be had on this machine
}

// New returns a Host that writes to out.
func New(out *recording.Appender, o Options) *Host {
	if o.FS == (FS{}) {
		o.FS = Local()
	}
	if o.Now == nil {
		o.Now = clock.Mono
	}
	if o.Sockets == nil {
		o.Sockets = OpenTCP
	}
	if o.Tick == 0 {
		o.Tick = time.Second
	}
	h := &Host{out: out, files: newFiles(o.FS), now: o.Now, tick: o.Tick}
	h.tree = newTree(h.files, o)
	h.note.Why = map[string]string{}
	h.sockets = newSocketProbe(o.Sockets)
	return h
}

// Parts lists what is sampled, in the order it should be: the first sample of a part only sets its counters' origin.
func (h *Host) Parts() []Part {
	process := max(processTick, h.tick)
	part := func(name string, every time.Duration, run func() error) Part {
		return Part{"host/" + name, every, func(context.Context, uint64) error { return run() }}
	}
	return []Part{
		part("machine", h.tick, h.sampleMachine),
		part("limits", h.tick, h.sampleLimits),
		part("pressure", h.tick, h.samplePressure),
		part("disks", h.tick, h.sampleDisks),
		part("network", h.tick, h.sampleNetwork),
		part("sockets", process, h.sampleSockets),
		part("processes", process, h.sampleProcesses),
	}
}

// Close closes the files and sockets that are kept open between samples.
func (h *Host) Close() error {
	for pid := range h.processes.queues {
		h.forgetThreads(pid)
	}
	for _, m := range h.tree.members {
		h.files.release(&m.statFile, &m.statusFile, &m.ioFile)
	}
	return h.sockets.close()
}

// because notes why something is not known, or with an empty reason that it is.
func (h *Host) because(what, reason string) {
	if h.note.Why[what] == reason {
		return
	}
	h.note.Why[what] = reason
	if reason == "" {
		delete(h.note.Why, what)
	}
	h.dirty = true
}

// describe sets a field of the host note.
func describe[T comparable](h *Host, field *T, v T) {
	if *field != v {
		*field, h.dirty = v, true
	}
}

// writeNote writes the host note if it changed: limits of a running job can be changed, workers come and go.
func (h *Host) writeNote() error {
	if !h.dirty {
		return nil
	}
	note := h.note
	note.Why = maps.Clone(h.note.Why)
	if err := h.out.Note(note); err != nil {
		return err
	}
	h.dirty = false
	return nil
}

// maybe returns a counter as the notes hold it.
func maybe[T int64 | uint64](v uint64, why string) unit.Maybe[T] {
	if v == unknown {
		return unit.None[T](why)
	}
	return unit.Some(T(v))
}

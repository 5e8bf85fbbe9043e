// Package child runs a GPU source in a process of its own, so that a hang, a crash or the memory of a vendor's library is the
// child's and not the agent's.
//
// The agent re-executes its own binary. In the child, [Serve] polls the source and writes frames to its standard output; in
// the agent, a [Child] reads them, restarts a child that died or fell silent, and hands everything to a sink in the agent's
// own loop. The death of a child is a health record: the agent never fails because of it.
//
// A child ends with its agent: its standard input closes, writing fails, and the kernel kills it (PR_SET_PDEATHSIG).
//
// Read [Serve] and [Child] first.
package child

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// ServeOptions of the child's side.
type ServeOptions struct {
	Declaration recording.Declaration // of the child's stream
	Poll        time.Duration         // between two samples, at first 4 s at most; 0 = 1 s. It is also the child's sign of life
	Now         func() uint64         // CLOCK_MONOTONIC, ns; nil = the clock
	Usage       func() Usage          // what the child has used; nil = ask the kernel
	// Wait sleeps until a time or the end of ctx; nil = a timer.
	Wait func(ctx context.Context, until uint64)
}

// pipeBytes is what a pipe holds (pipe(7)).
const pipeBytes = 64 << 10

// sourceRef is the Ref of the child's SOURCE records: it has one source.
const sourceRef = 0

// Serve samples the source until ctx ends or nobody reads any more. The caller closes the source.
func Serve(ctx context.Context, w io.Writer, source gpu.Source, o ServeOptions) error {
	o.Poll = cmp.Or(o.Poll, time.Second)
	if o.Now == nil {
		o.Now = clock.Mono
	}
	if o.Usage == nil {
		own := newSelf()
		defer own.close()
		o.Usage = own.usage
	}
	if o.Wait == nil {
		o.Wait = func(ctx context.Context, until uint64) { sleepUntil(ctx, o.Now, until) }
	}
	s := &server{source: source, o: o, told: map[uint16]recording.GPUNote{}}
	if err := s.run(ctx, w); err != nil {
		return fmt.Errorf("serving GPU counters: %w", err)
	}
	return nil
}

type server struct {
	source gpu.Source
	o      ServeOptions
	pipe   *bufio.Writer // a sample is written in one go: each write wakes the agent
	out    *recording.Appender

	devices []gpu.Device
	told    map[uint16]recording.GPUNote // what was last said of each device
	why     string                       // what was last said of the source
	last    uint64                       // ns, end of the last sample
	usage   Usage                        // at that time
}

func (s *server) run(ctx context.Context, w io.Writer) error {
	s.pipe = bufio.NewWriterSize(w, pipeBytes)
	pipe, err := recording.NewPipeWriter(s.pipe)
	if err != nil {
		return err
	}
	id, err := pipe.Declare(s.o.Declaration)
	if err != nil {
		return err
	}
	s.out = recording.NewAppender(pipe, id)
	if err := s.nameSource(""); err != nil {
		return err
	}
	if err := s.pipe.Flush(); err != nil { // the source may take its time
		return err
	}
	var problem error
	s.devices, problem = s.source.Devices(ctx)
	if err := errors.Join(s.announce(nil), s.pipe.Flush()); err != nil {
		return err
	}
	s.last, s.usage = s.o.Now(), s.o.Usage()
	return s.poll(ctx, problem)
}

// poll samples on schedule. One that is missed by more than an interval is left out, as the next returns all windows since.
func (s *server) poll(ctx context.Context, problem error) error {
	began := s.last
	due := began + s.pause(0)
	for {
		s.o.Wait(ctx, due)
		if ctx.Err() != nil {
			return s.sampleLast(ctx, problem)
		}
		started := s.o.Now()
		late := started - min(started, due)
		if err := s.sample(ctx, started, late, problem); err != nil {
			return err
		}
		problem = nil
		interval := s.pause(started - began)
		if late > interval {
			due = started
		}
		due += interval
	}
}

// pause is the time between two samples of a source that was opened so long ago (ns). Of a short run little may be lost when an engine or
// the child ends in its middle.
func (s *server) pause(age uint64) uint64 {
	const first = uint64(4 * time.Second)
	return min(uint64(s.o.Poll), max(first, age/10))
}

// lastSample is how long the sample may take that is taken when the agent ends: it kills a child that is slow to go.
const lastSample = time.Second

// sampleLast fetches what was counted since the last poll, which may lie seconds back.
func (s *server) sampleLast(ctx context.Context, problem error) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSample)
	defer cancel()
	return s.sample(last, s.o.Now(), 0, problem)
}

// sample takes one sample and reports on it. The error is the pipe's; a problem of the source is what it reports.
func (s *server) sample(ctx context.Context, until, late uint64, problem error) error {
	batch, err := s.source.Sample(ctx, until)
	problem = errors.Join(problem, err)
	if batch.Changed {
		devices, err := s.source.Devices(ctx)
		problem = errors.Join(problem, err)
		s.devices = devices
	}
	if ctx.Err() == nil { // else it was cut short, and the sample that follows speaks of how the source is
		if err := s.announce(batch.Failures); err != nil {
			return err
		}
	}
	if err := s.out.Append(encode(batch)...); err != nil {
		return err
	}
	if err := s.tellHolders(batch.Holders); err != nil || ctx.Err() != nil {
		return errors.Join(err, s.pipe.Flush())
	}
	return errors.Join(s.health(batch, problem, late), s.pipe.Flush())
}

// tellHolders writes to whom devices are assigned. One whose UUID nobody knows cannot be spoken of.
func (s *server) tellHolders(all []gpu.Holders) error {
	for _, h := range all {
		note := h.AllocationNote
		if note.UUID = s.told[h.Ref].UUID; note.UUID == "" {
			continue
		}
		if err := s.out.Note(note); err != nil {
			return err
		}
	}
	return nil
}

// encode puts the further counters of a window right behind it, as SPEC §2 has them.
func encode(b gpu.Batch) (records []recording.Record) {
	pipes := map[uint16][]recording.GPUPipes{}
	for _, p := range b.Pipes {
		pipes[p.Ref] = append(pipes[p.Ref], p)
	}
	for _, w := range b.Windows {
		records = append(records, w.Encode())
		if more := pipes[w.Ref]; len(more) > 0 && more[0].Begin == w.Begin && more[0].End == w.End {
			records = append(records, more[0].Encode())
			pipes[w.Ref] = more[1:]
		}
	}
	for _, v := range b.States {
		records = append(records, v.Encode())
	}
	for _, v := range b.Processes {
		records = append(records, v.Encode())
	}
	for _, v := range b.Events {
		records = append(records, v.Encode())
	}
	return records
}

// health writes the SOURCE record of one sample, and a note when the source's state has another reason than before.
func (s *server) health(batch gpu.Batch, problem error, lateness uint64) error {
	why, flags := "", uint8(recording.SourceSuccess)
	if problem != nil {
		why, flags = strings.ReplaceAll(problem.Error(), "\n", "; "), 0 // of several sources
	}
	if why != s.why {
		if err := s.nameSource(why); err != nil {
			return err
		}
	}
	now, usage := s.o.Now(), s.o.Usage()
	errs := uint64(len(batch.Failures)) + batch.Rejected
	if problem != nil {
		errs++
	}
	record := recording.Source{Flags: flags, Ref: sourceRef, Begin: s.last, End: now, Lateness: lateness,
		Samples: uint32(len(batch.Windows)), Errors: uint32(min(errs, recording.Unknown32-1)),
		CPU: usage.coresSince(s.usage, now-s.last), RSS: usage.RSS}.Encode()
	s.last, s.usage = now, usage
	return s.out.Append(record)
}

// nameSource says what the SOURCE records are of, and why it has no data, "" if it has.
func (s *server) nameSource(why string) error {
	s.why = why
	return s.out.Note(recording.DeviceNameNote{Class: recording.ClassSource, Ref: sourceRef, Name: "gpu/" + s.source.Name(), Why: why})
}

// announce writes a note of every device of which something else is to be said than before: why it gave nothing this time,
// or that it does again.
func (s *server) announce(failures []gpu.Failure) error {
	why := map[uint16]string{}
	for _, f := range failures {
		why[f.Ref] = f.Why
	}
	for _, d := range s.devices {
		note := d.Note()
		if failed, ok := why[d.Ref]; ok {
			note.Why = failed
		}
		if said, ok := s.told[d.Ref]; ok && said == note {
			continue
		}
		s.told[d.Ref] = note
		if err := s.out.Note(note); err != nil {
			return err
		}
	}
	return nil
}

func sleepUntil(ctx context.Context, now func() uint64, until uint64) {
	n := now()
	if until <= n {
		return
	}
	timer := time.NewTimer(time.Duration(until - n))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// UntilEOF returns a context that ends when the agent closes the child's standard input, or dies.
func UntilEOF(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx, cancel
}

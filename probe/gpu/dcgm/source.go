//go:build linux && cgo

package dcgm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// Source is the GPUs of one host engine. It implements [gpu.Source].
type Source struct {
	options Options
	engine  engine
	guard   guard
	clock   engineClock
	devices []*counted
	unknown error                     // GPUs of which the engine does not say which they are
	known   map[gpu.Identity]*counted // every GPU ever seen, as it was seen last: it keeps its number
	opened  int64                     // ns, when counting began: what was counted before is not ours
	reach   int64                     // ns

	down    error // why there is no connection; nil = there is one
	retry   uint64
	backoff time.Duration
}

// counted is one GPU or slice, and what is asked of it.
type counted struct {
	found
	gpu.Device
	group   bind.GroupHandle
	metrics []uint16 // the profiling metrics that are counted
	begin   int64    // the engine's µs at which the first read begins
	feeds   []*feed  // of the metrics, and of the fields beside them
	windows *assembler
	why     string // why the newest sample of SM activity has no value
	counted int64  // ns, the poll that last had SM activity …
	doubt   string // … and why its newest is not to be trusted
}

// Open connects to the engine and watches every GPU it has. It fails where no engine runs; a GPU that cannot be counted is listed
// with the reason.
func Open(_ context.Context, o Options) (*Source, error) {
	o.Interval = cmp.Or(o.Interval, Shortest)
	o.Patience = cmp.Or(o.Patience, 8*time.Second)
	if o.Interval < Shortest {
		return nil, fmt.Errorf("opening DCGM: a window of %v is shorter than %v, the least that DCGM measures rightly", o.Interval, Shortest)
	}
	s := &Source{options: o, engine: engine{o: o}, guard: guard{patience: o.Patience}, known: map[gpu.Identity]*counted{},
		opened: int64(clock.Mono()), reach: reach(o.Interval)}
	err, _ := s.guard.do(s.begin)
	if err != nil {
		return nil, fmt.Errorf("opening DCGM: %w", err)
	}
	return s, nil
}

// begin connects and sets up all that is asked of the engine. It runs under the guard.
func (s *Source) begin() error {
	if err := s.engine.connect(); err != nil {
		return explain(err)
	}
	all, unknown, err := s.engine.gpus()
	if err == nil {
		s.unknown = unknown
		err = s.watch(all)
	}
	if err == nil {
		return nil
	}
	s.engine.disconnect()
	if err = explain(err); errors.Is(err, errLost) {
		return fmt.Errorf("what listens at %s does not answer as a host engine does, or it is ending", s.engine.at)
	}
	return err
}

// Name returns "dcgm".
func (s *Source) Name() string { return Name }

// Devices returns the GPUs as they were found at the last connection. The error names those that could not be told apart.
func (s *Source) Devices(context.Context) ([]gpu.Device, error) {
	devices := make([]gpu.Device, len(s.devices))
	for i, d := range s.devices {
		devices[i] = d.Device
	}
	return devices, s.unknown
}

// Sample reads one GPU after the other: what a poll returns at once stays small, and each row is over 4 KiB.
func (s *Source) Sample(ctx context.Context, until uint64) (gpu.Batch, error) {
	var b gpu.Batch
	if s.down != nil && !s.reconnect(until, &b) {
		return b, s.down
	}
	for _, d := range s.devices {
		if ctx.Err() != nil {
			return b, ctx.Err()
		}
		if d.Missing != "" {
			b.Failures = append(b.Failures, gpu.Failure{Ref: d.Ref, Why: d.Missing})
			continue
		}
		if err := s.sample(d, until, &b); err != nil {
			s.again(err, until, &b)
			return b, err
		}
	}
	return b, nil
}

// again connects anew to an engine that was lost: it may be back already, and the next poll is seconds away.
func (s *Source) again(err error, now uint64, b *gpu.Batch) {
	if !errors.Is(err, errLost) {
		return
	}
	s.retry = now
	if !s.reconnect(now, b) {
		s.backoff = time.Second
		s.retry = now + uint64(s.backoff)
	}
}

// inTrouble notes that the engine hangs or is gone, and when to try again.
func (s *Source) inTrouble(err error, now uint64) bool {
	if !errors.Is(err, errHung) && !errors.Is(err, errLost) {
		return false
	}
	s.down = err
	s.backoff = time.Second
	s.retry = now + uint64(s.backoff)
	return true
}

// reconnect makes everything anew: no handle, group or watch survives its connection.
func (s *Source) reconnect(now uint64, b *gpu.Batch) bool {
	if now < s.retry {
		return false
	}
	anew := func() error {
		s.engine.disconnect()
		return s.begin()
	}
	err, recovered := s.guard.do(anew)
	if recovered {
		err, _ = s.guard.do(anew)
	}
	if err != nil {
		s.backoff = min(2*s.backoff, 30*time.Second)
		s.retry = now + uint64(s.backoff)
		s.down = err
		return false
	}
	s.down, s.backoff = nil, 0
	b.Changed = true
	for _, d := range s.devices {
		b.Events = append(b.Events, recording.GPUEvent{Ref: d.Ref, T: now, Code: recording.GPUEventRestated, Value: recording.Unknown64})
	}
	return true
}

// Close gives the watches and the connection up.
func (s *Source) Close() error {
	err, _ := s.guard.do(func() error {
		s.engine.disconnect()
		return nil
	})
	return err
}

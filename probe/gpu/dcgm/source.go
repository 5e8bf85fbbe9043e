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
	known   map[gpu.Identity]*counted // every GPU ever seen, as it was seen last: it keeps its number
	device  bind.FieldHandle          // the field group of what is not profiling

	down    error // why there is no connection; nil = there is one
	retry   uint64
	backoff time.Duration
}

// counted is one GPU or slice, and what is asked of it.
type counted struct {
	found
	gpu.Device
	group   bind.GroupHandle
	prof    bind.FieldHandle
	fields  []uint16 // of prof
	plain   bool     // the fields beside profiling are watched, too
	windows *assembler
	since   int64 // engine µs up to which everything was read
	why     string
}

// Open connects to the engine and watches every GPU it has. It fails where no engine runs; a GPU that cannot be counted is listed
// with the reason.
func Open(_ context.Context, o Options) (*Source, error) {
	o.Interval = cmp.Or(o.Interval, Shortest)
	o.Patience = cmp.Or(o.Patience, 8*time.Second)
	if o.Interval < Shortest {
		return nil, fmt.Errorf("opening DCGM: a window of %v is shorter than %v, the least that DCGM measures rightly", o.Interval, Shortest)
	}
	s := &Source{options: o, engine: engine{o: o}, guard: guard{patience: o.Patience}, known: map[gpu.Identity]*counted{}}
	err, _ := s.guard.do(s.begin)
	if err != nil {
		return nil, fmt.Errorf("opening DCGM: %w", err)
	}
	return s, nil
}

// begin connects and sets up all that is asked of the engine. It runs under the guard.
func (s *Source) begin() error {
	if err := s.engine.connect(); err != nil {
		return err
	}
	all, err := s.engine.gpus()
	if err == nil {
		err = s.watch(all)
	}
	if err != nil {
		s.engine.disconnect()
	}
	return err
}

// Name returns "dcgm".
func (s *Source) Name() string { return Name }

// Devices returns the GPUs as they were found at the last connection.
func (s *Source) Devices(context.Context) ([]gpu.Device, error) {
	devices := make([]gpu.Device, len(s.devices))
	for i, d := range s.devices {
		devices[i] = d.Device
	}
	return devices, nil
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
			continue
		}
		if err := s.sample(d, until, &b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// sample reads one GPU. The error means that the engine as a whole is in trouble.
func (s *Source) sample(d *counted, until uint64, b *gpu.Batch) error {
	err := s.read(d, d.prof, b)
	if err == nil && d.plain {
		err = s.read(d, s.device, b)
	}
	if err != nil && s.inTrouble(err, until) {
		return s.down
	}
	if err != nil {
		b.Failures = append(b.Failures, gpu.Failure{Ref: d.Ref, Why: err.Error()})
		return nil
	}
	windows, pipes := d.windows.close(d.Ref, int64(until))
	for i := range windows {
		if why := gpu.Contradiction(windows[i], pipesOf(pipes, windows[i])); why != "" {
			windows[i].Flags |= recording.GPUUntrusted
			b.Rejected++
			d.why = why
		}
	}
	if len(windows) == 0 && d.why != "" {
		b.Failures = append(b.Failures, gpu.Failure{Ref: d.Ref, Why: d.why})
	}
	b.Windows, b.Pipes = append(b.Windows, windows...), append(b.Pipes, pipes...)
	return nil
}

func pipesOf(pipes []recording.GPUPipes, w recording.GPU) *recording.GPUPipes {
	for i := range pipes {
		if pipes[i].End == w.End {
			return &pipes[i]
		}
	}
	return nil
}

// read takes the rows of one field group of one GPU. They overlap with those read before: a sample that the profiling module
// delivers late lies before what the engine calls the next time.
func (s *Source) read(d *counted, fields bind.FieldHandle, b *gpu.Batch) error {
	var rows []row
	var engineNow int64
	since := d.since - d.windows.overlap/1000
	asked := int64(clock.Mono())
	err, recovered := s.guard.do(func() (err error) {
		rows, engineNow, err = s.engine.read(d.group, fields, since)
		return err
	})
	answered := int64(clock.Mono())
	if recovered {
		return errLost
	}
	if err != nil {
		return err
	}
	s.clock.tick(engineNow*1000, asked, answered)
	s.clock.settle(answered - d.windows.overlap)
	d.since = engineNow
	s.take(d, rows, b)
	return nil
}

// take hands rows to the assembler. Rows without a value say why; of SM activity that is the device's reason.
func (s *Source) take(d *counted, rows []row, b *gpu.Batch) {
	for _, r := range rows {
		v, why := r.value()
		if r.us <= 0 {
			if r.field == fieldSM {
				d.why = "no sample of SM activity: " + why
			}
			continue
		}
		if d.windows.has(r.field, r.us) {
			continue
		}
		t, ok := s.clock.mono(r.us*1000, d.windows.emitted)
		if !ok {
			b.Rejected++
			continue
		}
		if why != "" {
			if r.field == fieldSM {
				d.why = "SM activity: " + why
			}
			b.Rejected++
		} else if r.field == fieldSM {
			d.why = ""
		}
		d.windows.add(r.field, r.us, sample{t, v})
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
	err, recovered := s.guard.do(func() error {
		s.engine.disconnect()
		return s.begin()
	})
	if recovered || err != nil {
		s.backoff = min(2*s.backoff, 30*time.Second)
		s.retry = now + uint64(s.backoff)
		if err != nil {
			s.down = err
		}
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

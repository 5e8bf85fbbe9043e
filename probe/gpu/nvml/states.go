//go:build linux && cgo

package nvml

import (
	"context"
	"fmt"
	"strings"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// States is what NVML tells beside the counters. It implements [gpu.Source] and has no window.
type States struct {
	library *library
	handles []*handle
	last    []reading
	errors  *xids

	processesDue uint64
	processesAt  uint64
}

// reading is what is needed of the last look to tell of the time since.
type reading struct {
	at     uint64 // ns
	energy energy
	util   utilRing
}

// OpenStates loads the library.
func OpenStates(context.Context) (*States, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	handles, why, err := l.handles()
	if err == nil && len(handles) == 0 {
		err = fmt.Errorf("NVML sees no GPU it may open%s", because(why))
	}
	if err != nil {
		l.close()
		return nil, err
	}
	s := &States{library: l, handles: handles, last: make([]reading, len(handles)), errors: watchXids(l, handles)}
	now := clock.Mono()
	for i, h := range handles {
		s.last[i].at, s.last[i].energy = now, s.library.energy(h)
		s.last[i].util.start()
	}
	return s, nil
}

func because(why []string) string {
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, "; ") + ")"
}

// Name returns "nvml".
func (s *States) Name() string { return StatesName }

// Devices lists the GPUs. None has SM activity from here.
func (s *States) Devices(context.Context) ([]gpu.Device, error) {
	devices := make([]gpu.Device, len(s.handles))
	for i, h := range s.handles {
		devices[i] = gpu.Device{Identity: h.Identity, Ref: uint16(i), Name: h.name, Source: StatesName, Grade: gpu.GradeC, Index: unit.Some(h.index),
			Missing: "NVML tells whether a kernel is resident, not how many multiprocessors work"}
	}
	return devices, nil
}

// Sample tells the state of every GPU since the last look.
func (s *States) Sample(ctx context.Context, until uint64) (gpu.Batch, error) {
	b := gpu.Batch{Events: s.errors.take()}
	look := until >= s.processesDue
	for i, h := range s.handles {
		if ctx.Err() != nil {
			return b, ctx.Err()
		}
		ref := uint16(i)
		if !s.there(h, ref, until, &b) {
			continue
		}
		b.States = append(b.States, s.state(h, ref, &s.last[i], until))
		if look {
			b.Processes = append(b.Processes, s.library.processes(h, ref, s.processesAt, until)...)
		}
	}
	if look {
		s.processesAt, s.processesDue = until, until+uint64(BetweenProcesses)
	}
	return b, nil
}

// there tells when a GPU falls off the bus, and when it is back.
func (s *States) there(h *handle, ref uint16, now uint64, b *gpu.Batch) bool {
	_, r := h.device.GetUUID()
	if lost := r == bind.ERROR_GPU_IS_LOST; lost != h.lost {
		h.lost = lost
		code := uint32(recording.GPUEventBack)
		if lost {
			code = recording.GPUEventGone
		}
		b.Events = append(b.Events, recording.GPUEvent{Ref: ref, T: now, Code: code, Value: recording.Unknown64})
	}
	if r != bind.SUCCESS {
		b.Failures = append(b.Failures, gpu.Failure{Ref: ref, Why: "NVML: " + bind.ErrorString(r)})
	}
	return r == bind.SUCCESS
}

// state reads everything once. The window reaches back to the look before.
func (s *States) state(h *handle, ref uint16, last *reading, until uint64) recording.GPUState {
	l := s.library
	state := recording.GPUState{Ref: ref, Begin: last.at, End: until, PowerLimit: l.powerLimit(h), SMClock: l.clock(h, false),
		SMClockMax: l.clock(h, true), Reasons: l.reasons(h), Link: l.link(h).Pack(), Resident: last.util.since(l, h)}
	state.MemoryUsed, state.MemoryAll = l.memory(h)
	now := l.energy(h)
	state.Power = power(last.energy, now, func() float32 { return l.power(h) })
	last.at, last.energy = until, now
	return state
}

// Close unloads the library.
func (s *States) Close() error {
	s.errors.stop()
	s.library.close()
	return nil
}

package standin

import (
	"context"
	"math"
	"time"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// Outcome is what a source told a process that sampled it. It survives JSON: a value that is not known is null.
type Outcome struct {
	OpenError    string
	Devices      []gpu.Device
	DevicesError string
	Polls        []Poll
	CloseTook    time.Duration
}

// Poll is one Sample.
type Poll struct {
	At        uint64 // ns
	Took      time.Duration
	Error     string
	Windows   []Record
	Pipes     []Record
	States    []Record
	Processes []recording.GPUProcess
	Events    []recording.GPUEvent
	Failures  []gpu.Failure
	Rejected  uint64
}

// Record is a window, pipes or state with the values that are known.
type Record struct {
	Ref        uint16
	Flags      uint8
	Begin, End uint64
	Values     map[string]float64
}

// Sampled opens a source and samples it for a while.
func Sampled(open func(context.Context) (gpu.Source, error), long, every time.Duration) (o Outcome) {
	ctx := context.Background()
	s, err := open(ctx)
	if err != nil {
		o.OpenError = err.Error()
		return o
	}
	for end := time.Now().Add(long); time.Now().Before(end); {
		time.Sleep(every)
		now := clock.Mono()
		b, err := s.Sample(ctx, now)
		p := Poll{At: now, Took: time.Duration(clock.Mono() - now), Processes: b.Processes, Events: b.Events, Failures: b.Failures, Rejected: b.Rejected}
		if err != nil {
			p.Error = err.Error()
		}
		for _, w := range b.Windows {
			p.Windows = append(p.Windows, record(w.Ref, w.Flags, w.Begin, w.End, map[string]float32{"sm": w.SM, "resident": w.Resident, "tensor": w.Tensor,
				"dram": w.DRAM, "copy": w.Copy, "power": w.Power, "clock": w.SMClock, "memory": w.Memory}))
		}
		for _, v := range b.Pipes {
			p.Pipes = append(p.Pipes, record(v.Ref, v.Flags, v.Begin, v.End, map[string]float32{"engine": v.Engine, "occupancy": v.Occupancy, "fp32": v.FP32,
				"pcie-in": v.PCIeIn, "pcie-out": v.PCIeOut, "nvlink-in": v.NVLinkIn, "nvlink-out": v.NVLinkOut}))
		}
		for _, v := range b.States {
			values := map[string]float32{"power": v.Power, "power-limit": v.PowerLimit, "clock": v.SMClock, "max-clock": v.SMClockMax, "used": v.MemoryUsed,
				"memory": v.MemoryAll, "resident": v.Resident}
			if v.Reasons != recording.Unknown32 {
				values["reasons"] = float32(v.Reasons)
			}
			link := recording.UnpackLink(v.Link)
			for name, n := range map[string]uint8{"generation": link.Generation, "width": link.Width, "max-generation": link.MaxGeneration, "max-width": link.MaxWidth} {
				if n != 255 {
					values[name] = float32(n)
				}
			}
			p.States = append(p.States, record(v.Ref, v.Flags, v.Begin, v.End, values))
		}
		o.Polls = append(o.Polls, p)
	}
	o.Devices, err = s.Devices(ctx)
	if err != nil {
		o.DevicesError = err.Error()
	}
	begin := time.Now()
	s.Close()
	o.CloseTook = time.Since(begin)
	return o
}

func record(ref uint16, flags uint8, begin, end uint64, values map[string]float32) Record {
	r := Record{ref, flags, begin, end, map[string]float64{}}
	for name, v := range values {
		if !math.IsNaN(float64(v)) {
			r.Values[name] = float64(v)
		}
	}
	return r
}

// Windows returns those of one GPU, in the order they came.
func (o Outcome) Windows(ref uint16) (all []Record) {
	for _, p := range o.Polls {
		for _, w := range p.Windows {
			if w.Ref == ref {
				all = append(all, w)
			}
		}
	}
	return all
}

// Events returns all of them.
func (o Outcome) Events() (all []recording.GPUEvent) {
	for _, p := range o.Polls {
		all = append(all, p.Events...)
	}
	return all
}

// States returns those of one GPU, in the order they came.
func (o Outcome) States(ref uint16) (all []Record) {
	for _, p := range o.Polls {
		for _, s := range p.States {
			if s.Ref == ref {
				all = append(all, s)
			}
		}
	}
	return all
}

//go:build linux && cgo

package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// GPM counts SM activity on Hopper and newer. It implements [gpu.Source] and [gpu.Selective].
//
// A window is the difference of two samples. They are taken on a schedule of their own, not at each poll, and no closer than the
// GPU refreshes them.
type GPM struct {
	library  *library
	interval time.Duration
	counted  []*gpmDevice

	began atomic.Uint64 // ns, of the call into the driver that goes on; 0 = none does

	mu   sync.Mutex // guards what the schedule fills
	full gpu.Batch
	stop chan struct{} // nil until somebody samples
	done chan struct{}
}

type gpmDevice struct {
	*handle
	ref     uint16
	missing string
	unused  bool
	sample  [2]bind.GpmSample
	at      [2]uint64 // ns
	next    int       // which of the two is taken next
	taken   int
}

// shortestGPM is between two samples: "greater than 100 ms" (nvml.h).
const shortestGPM = 101 * time.Millisecond

// OpenGPM loads the library. It fails where no GPU has counters that NVML can read.
func OpenGPM(_ context.Context, o Options) (*GPM, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	g := &GPM{library: l, interval: max(cmp.Or(o.Interval, shortestGPM), shortestGPM)}
	handles, why, err := l.handles()
	if err != nil {
		l.close()
		return nil, err
	}
	any := false
	instances := map[gpu.Identity]int{}
	for _, h := range handles {
		instances[h.instance()]++
	}
	for i, h := range handles {
		d := &gpmDevice{handle: h, ref: uint16(i), missing: l.gpmMissing(h)}
		if d.missing == "" && h.parent != nil && instances[h.instance()] > 1 {
			d.missing = "NVML counts a GPU instance as a whole, and this one is cut into several compute instances"
		}
		any = any || d.missing == ""
		g.counted = append(g.counted, d)
	}
	if !any {
		l.close()
		return nil, fmt.Errorf("no GPU here has counters that NVML can read: they came with Hopper%s", because(why))
	}
	return g, nil
}

// instance is the GPU instance that a slice is a part of.
func (h *handle) instance() gpu.Identity { return gpu.Identity{Parent: h.Parent, GI: h.GI, CI: -1} }

// gpmMissing says why the GPU cannot be counted, "" if it can.
func (l *library) gpmMissing(h *handle) string {
	needed := []string{"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"}
	if h.parent != nil {
		needed = append(needed, "nvmlGpmMigSampleGet")
	}
	for _, f := range needed {
		if !l.has(f) {
			return "the driver is too old for NVML's counters"
		}
	}
	support, r := h.whole().GpmQueryDeviceSupport()
	if r != bind.SUCCESS || support.IsSupportedDevice == 0 {
		return "this GPU has no counters that NVML can read: they came with Hopper"
	}
	return ""
}

// Name returns "nvml-gpm".
func (g *GPM) Name() string { return GPMName }

// Devices lists the GPUs.
func (g *GPM) Devices(context.Context) ([]gpu.Device, error) {
	devices := make([]gpu.Device, len(g.counted))
	for i, d := range g.counted {
		devices[i] = gpu.Device{Identity: d.Identity, Ref: d.ref, Name: d.name, Source: GPMName, Grade: gpu.GradeA, Missing: d.missing,
			Interval: uint64(g.interval), Index: unit.Some(d.index)}
	}
	return devices, nil
}

// Use says which GPUs to count; the others are left alone from here on.
func (g *GPM) Use(refs []uint16) {
	for _, d := range g.counted {
		d.unused = true
		for _, ref := range refs {
			if d.ref == ref {
				d.unused = false
			}
		}
	}
}

// hung is how long a call into the driver may take. Nothing can end it.
const hung = 3 * time.Second

// Sample returns the windows that were counted since the last call; the first one starts the counting. It waits for no call into the driver.
func (g *GPM) Sample(context.Context, uint64) (gpu.Batch, error) {
	if g.stop == nil {
		g.stop, g.done = make(chan struct{}), make(chan struct{})
		go g.count()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	full := g.full
	g.full = gpu.Batch{}
	if began := g.began.Load(); began != 0 && clock.Mono()-began > uint64(hung) {
		return full, errors.New("the driver does not answer")
	}
	return full, nil
}

// count takes samples until the source is closed.
func (g *GPM) count() {
	defer close(g.done)
	ticks := time.NewTicker(g.interval)
	defer ticks.Stop()
	for {
		for _, d := range g.counted {
			if d.missing == "" && !d.unused {
				g.began.Store(clock.Mono())
				g.tick(d)
				g.began.Store(0)
			}
		}
		select {
		case <-ticks.C:
		case <-g.stop:
			return
		}
	}
}

// mostWindows that wait to be taken, per GPU, when nobody asks.
const mostWindows = 6000

// tick takes one sample, and makes a window of it and the one before.
func (g *GPM) tick(d *gpmDevice) {
	window, pipes, why := d.window()
	g.mu.Lock()
	defer g.mu.Unlock()
	if why != "" {
		g.full.Rejected++
		for _, f := range g.full.Failures {
			if f.Ref == d.ref {
				return
			}
		}
		g.full.Failures = append(g.full.Failures, gpu.Failure{Ref: d.ref, Why: why})
		return
	}
	if d.taken < 2 || len(g.full.Windows) >= mostWindows*len(g.counted) {
		return
	}
	if c := gpu.Contradiction(window, &pipes); c != "" {
		window.Flags |= recording.GPUUntrusted
		g.full.Rejected++
	}
	g.full.Windows, g.full.Pipes = append(g.full.Windows, window), append(g.full.Pipes, pipes)
}

// window takes a sample and returns the window that it ends; the first one ends none.
func (d *gpmDevice) window() (w recording.GPU, p recording.GPUPipes, why string) {
	fresh := &d.sample[d.next]
	if *fresh == nil {
		s, r := bind.GpmSampleAlloc()
		if r != bind.SUCCESS {
			return w, p, "NVML gives no room for counters: " + bind.ErrorString(r)
		}
		*fresh = s
	}
	before := clock.Mono()
	if now := d.at[1-d.next]; d.taken > 0 && before-now < uint64(100*time.Millisecond) {
		time.Sleep(time.Duration(uint64(shortestGPM) - (before - now)))
		before = clock.Mono()
	}
	r := d.get(*fresh)
	after := clock.Mono()
	if r != bind.SUCCESS {
		d.taken = 0
		return w, p, "NVML's counters: " + bind.ErrorString(r)
	}
	d.at[d.next] = before + (after-before)/2
	d.taken = min(d.taken+1, 2)
	old := 1 - d.next
	d.next = old
	if d.taken < 2 {
		return w, p, ""
	}
	return d.difference(old, 1-old)
}

// get takes a sample: of a slice through its GPU.
func (d *gpmDevice) get(sample bind.GpmSample) bind.Return {
	if d.parent != nil {
		return d.parent.GpmMigSampleGet(d.GI, sample)
	}
	return d.device.GpmSampleGet(sample)
}

const mebibyte = 1 << 20

// difference asks for the metrics between two samples.
func (d *gpmDevice) difference(old, fresh int) (w recording.GPU, p recording.GPUPipes, why string) {
	get := bind.GpmMetricsGetType{Sample1: d.sample[old], Sample2: d.sample[fresh]}
	ids := []bind.GpmMetricId{bind.GPM_METRIC_SM_UTIL, bind.GPM_METRIC_GRAPHICS_UTIL, bind.GPM_METRIC_SM_OCCUPANCY, bind.GPM_METRIC_ANY_TENSOR_UTIL,
		bind.GPM_METRIC_DRAM_BW_UTIL, bind.GPM_METRIC_FP32_UTIL, bind.GPM_METRIC_PCIE_RX_PER_SEC, bind.GPM_METRIC_PCIE_TX_PER_SEC,
		bind.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, bind.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC}
	get.NumMetrics = uint32(len(ids))
	for i, id := range ids {
		get.Metrics[i].MetricId = uint32(id)
	}
	if r := bind.GpmMetricsGet(&get); r != bind.SUCCESS {
		return w, p, "NVML's counters: " + bind.ErrorString(r)
	}
	value := func(i int, scale float64) float32 {
		v := get.Metrics[i].Value
		if bind.Return(get.Metrics[i].NvmlReturn) != bind.SUCCESS || v < 0 || math.IsInf(v, 0) {
			return unknown
		}
		return float32(v * scale)
	}
	w = recording.GPU{Ref: d.ref, Begin: d.at[old], End: d.at[fresh], SM: value(0, 0.01), Resident: unknown, Tensor: value(3, 0.01), DRAM: value(4, 0.01),
		Copy: unknown, Power: unknown, SMClock: unknown, Memory: unknown}
	p = recording.GPUPipes{Ref: d.ref, Begin: w.Begin, End: w.End, Engine: value(1, 0.01), Occupancy: value(2, 0.01), FP32: value(5, 0.01),
		PCIeIn: value(6, mebibyte), PCIeOut: value(7, mebibyte), NVLinkIn: value(8, mebibyte), NVLinkOut: value(9, mebibyte)}
	if math.IsNaN(float64(w.SM)) {
		return w, p, "NVML tells no SM activity for this window"
	}
	return w, p, ""
}

// Close ends the counting. What hangs in the driver is left alone.
func (g *GPM) Close() error {
	if g.stop != nil {
		close(g.stop)
		select {
		case <-g.done:
		case <-time.After(time.Second):
			return errors.New("closing NVML's counters: the driver does not answer")
		}
	}
	for _, d := range g.counted {
		for _, s := range d.sample {
			if s != nil {
				s.Free()
			}
		}
	}
	g.library.close()
	return nil
}

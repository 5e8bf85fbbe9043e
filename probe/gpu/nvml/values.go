//go:build linux && cgo

package nvml

import (
	"math"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

var unknown = float32(math.NaN())

// whole is the GPU to ask for what slices do not have of their own.
func (h *handle) whole() bind.Device {
	if h.parent != nil {
		return h.parent
	}
	return h.device
}

func (l *library) memory(h *handle) (used, all float32) {
	if !l.has("nvmlDeviceGetMemoryInfo_v2") {
		return unknown, unknown
	}
	m, r := h.device.GetMemoryInfo_v2()
	if r != bind.SUCCESS {
		return unknown, unknown
	}
	return float32(m.Used), float32(m.Total)
}

// energy looks at the counter. Slices have none: their GPU's is not theirs.
func (l *library) energy(h *handle) energy {
	if h.parent != nil || !l.has("nvmlDeviceGetTotalEnergyConsumption") {
		return energy{}
	}
	before := clock.Mono()
	mj, r := h.device.GetTotalEnergyConsumption()
	return energy{t: before + (clock.Mono()-before)/2, mj: mj, known: r == bind.SUCCESS}
}

// power is one reading. On an A100 it is of this moment, elsewhere a mean over a second.
func (l *library) power(h *handle) float32 {
	if h.parent != nil || !l.has("nvmlDeviceGetPowerUsage") {
		return unknown
	}
	mw, r := h.device.GetPowerUsage()
	if r != bind.SUCCESS {
		return unknown
	}
	return float32(mw) / 1000
}

func (l *library) powerLimit(h *handle) float32 {
	if h.parent != nil || !l.has("nvmlDeviceGetEnforcedPowerLimit") {
		return unknown
	}
	mw, r := h.device.GetEnforcedPowerLimit()
	if r != bind.SUCCESS {
		return unknown
	}
	return float32(mw) / 1000
}

// clock is that of the SMs in Hz, now or at most.
func (l *library) clock(h *handle, highest bool) float32 {
	ask := h.whole().GetClockInfo
	if highest {
		if !l.has("nvmlDeviceGetMaxClockInfo") {
			return unknown
		}
		ask = h.whole().GetMaxClockInfo
	}
	if !highest && !l.has("nvmlDeviceGetClockInfo") {
		return unknown
	}
	mhz, r := ask(bind.CLOCK_SM)
	if r != bind.SUCCESS {
		return unknown
	}
	return float32(mhz) * 1e6
}

// reasons is why the clock is not higher. Before driver 535 the function had another name.
func (l *library) reasons(h *handle) uint32 {
	var mask uint64
	r := bind.Return(bind.ERROR_FUNCTION_NOT_FOUND)
	switch {
	case l.has("nvmlDeviceGetCurrentClocksEventReasons"):
		mask, r = h.whole().GetCurrentClocksEventReasons()
	case l.has("nvmlDeviceGetCurrentClocksThrottleReasons"):
		mask, r = h.whole().GetCurrentClocksThrottleReasons()
	}
	if r != bind.SUCCESS || mask >= recording.Unknown32 {
		return recording.Unknown32
	}
	return uint32(mask)
}

func (l *library) link(h *handle) recording.Link {
	d := h.whole()
	ask := func(symbol string, call func() (int, bind.Return)) uint8 {
		if !l.has(symbol) {
			return 255
		}
		n, r := call()
		if r != bind.SUCCESS || n < 0 || n > 254 {
			return 255
		}
		return uint8(n)
	}
	return recording.Link{
		Generation:    ask("nvmlDeviceGetCurrPcieLinkGeneration", d.GetCurrPcieLinkGeneration),
		Width:         ask("nvmlDeviceGetCurrPcieLinkWidth", d.GetCurrPcieLinkWidth),
		MaxGeneration: ask("nvmlDeviceGetMaxPcieLinkGeneration", d.GetMaxPcieLinkGeneration),
		MaxWidth:      ask("nvmlDeviceGetMaxPcieLinkWidth", d.GetMaxPcieLinkWidth),
	}
}

// processes lists who has a context. Pids are of the machine's namespace.
func (l *library) processes(h *handle, ref uint16, before, now uint64) (all []recording.GPUProcess) {
	const listing = "nvmlDeviceGetComputeRunningProcesses"
	if !l.hasAny(listing+"_v3", listing+"_v2", listing) {
		return nil
	}
	list, r := h.device.GetComputeRunningProcesses()
	if r != bind.SUCCESS {
		return nil
	}
	begin := before
	if begin == 0 {
		begin = now
	}
	if len(list) == 0 {
		return []recording.GPUProcess{{Ref: ref, Begin: begin, End: now, Memory: recording.Unknown64}}
	}
	for _, p := range list {
		memory := p.UsedGpuMemory
		if memory >= 1<<63 { // NVML_VALUE_NOT_AVAILABLE
			memory = recording.Unknown64
		}
		all = append(all, recording.GPUProcess{Ref: ref, Begin: begin, End: now, PID: p.Pid, Memory: memory})
	}
	return all
}

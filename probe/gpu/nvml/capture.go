//go:build linux && cgo

package nvml

import (
	"math"
	"strconv"
	"time"

	bind "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// asked are the functions of the library that datawait looks up before it calls them.
var asked = []string{
	"nvmlDeviceGetMigMode", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetEnforcedPowerLimit",
	"nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
	"nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth",
	"nvmlDeviceGetSamples", "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet",
}

// Capture asks the library everything that the sources of this package ask, once, and returns what it answered.
func Capture() (gpu.Capture, error) {
	var c gpu.Capture
	l, err := open()
	if err != nil {
		c.Say("no-driver")
		return c, err
	}
	defer l.close()
	l.captureVersions(&c)
	for _, symbol := range asked {
		if !l.has(symbol) {
			c.Say("missing call=%s", symbol)
		}
	}
	handles, why, err := l.handles()
	if err != nil {
		return c, err
	}
	for _, w := range why {
		c.Say("# %s", w)
	}
	for _, h := range handles {
		l.capture(&c, h)
	}
	return c, nil
}

func (l *library) captureVersions(c *gpu.Capture) {
	line := "driver"
	for _, v := range []struct {
		symbol, key string
		ask         func() (string, bind.Return)
	}{
		{"nvmlSystemGetDriverVersion", "version", bind.SystemGetDriverVersion},
		{"nvmlSystemGetNVMLVersion", "nvml", bind.SystemGetNVMLVersion},
	} {
		if !l.has(v.symbol) {
			continue
		}
		if text, r := v.ask(); r == bind.SUCCESS {
			line += " " + v.key + "=" + text
		}
	}
	c.Say("%s", line)
}

// capture keeps what one GPU answers. Of a slice only its GPU is kept, and that it is cut.
func (l *library) capture(c *gpu.Capture, h *handle) {
	if h.parent != nil {
		g := c.GPU(h.Parent)
		g.Set("name", h.name)
		g.Set("mig", 1)
		g.Say("gi id=" + strconv.Itoa(h.GI) + " gpu=%d gi=" + strconv.Itoa(h.GI))
		g.Say("ci id=" + strconv.Itoa(len(g.Directives)) + " in=" + strconv.Itoa(h.GI) + " ci=" + strconv.Itoa(h.CI))
		return
	}
	g := c.GPU(h.UUID)
	g.Set("name", h.name)
	if l.has("nvmlDeviceGetArchitecture") {
		if architecture, r := h.device.GetArchitecture(); r == bind.SUCCESS {
			g.Set("architecture", int(architecture))
		}
	}
	l.captureState(c, g, h)
	l.captureEnergy(g, h)
	if l.gpmMissing(h) == "" {
		g.Set("gpm", 1)
		captureGPM(c, g, h)
	}
}

// captureState keeps the readings of this moment, each in the unit of the directive: MiB, W, MHz.
func (l *library) captureState(c *gpu.Capture, g *gpu.CapturedGPU, h *handle) {
	keep := func(key string, value, unit float32) {
		if value == value {
			g.Set(key, math.Round(float64(value/unit)*1000)/1000)
		}
	}
	used, all := l.memory(h)
	keep("used", used, 1<<20)
	keep("memory", all, 1<<20)
	keep("power-limit", l.powerLimit(h), 1)
	keep("clock", l.clock(h, false), 1e6)
	keep("max-clock", l.clock(h, true), 1e6)
	l.captureRefusals(c, h)
	if reasons := l.reasons(h); reasons != recording.Unknown32 {
		g.Set("reasons", reasons)
	}
	link := l.link(h)
	for key, n := range map[string]uint8{"generation": link.Generation, "width": link.Width, "max-generation": link.MaxGeneration, "max-width": link.MaxWidth} {
		if n != 255 {
			g.Set(key, n)
		}
	}
	if processes, r := h.device.GetComputeRunningProcesses(); r != bind.SUCCESS {
		c.Fail("nvmlDeviceGetComputeRunningProcesses*", int(r))
	} else {
		for i, p := range processes { // who they are is nobody's business
			g.Say("process gpu=%d pid=" + strconv.Itoa(1000+i) + " memory=" + strconv.FormatUint(p.UsedGpuMemory>>20, 10))
		}
	}
}

// captureRefusals keeps the codes of functions that are there and refuse.
func (l *library) captureRefusals(c *gpu.Capture, h *handle) {
	for _, f := range []struct {
		symbol string
		ask    func() bind.Return
	}{
		{"nvmlDeviceGetMemoryInfo_v2", func() bind.Return { _, r := h.device.GetMemoryInfo_v2(); return r }},
		{"nvmlDeviceGetEnforcedPowerLimit", func() bind.Return { _, r := h.device.GetEnforcedPowerLimit(); return r }},
		{"nvmlDeviceGetClockInfo", func() bind.Return { _, r := h.device.GetClockInfo(bind.CLOCK_SM); return r }},
		{"nvmlDeviceGetMaxClockInfo", func() bind.Return { _, r := h.device.GetMaxClockInfo(bind.CLOCK_SM); return r }},
		{"nvmlDeviceGetPowerUsage", func() bind.Return { _, r := h.device.GetPowerUsage(); return r }},
	} {
		if !l.has(f.symbol) {
			continue
		}
		if r := f.ask(); r != bind.SUCCESS {
			c.Fail(f.symbol, int(r))
		}
	}
}

// captureEnergy keeps the power of this moment for a busy and an idle GPU alike: what it does is not told by one look.
func (l *library) captureEnergy(g *gpu.CapturedGPU, h *handle) {
	if !l.energy(h).known {
		g.Set("no-energy", 1)
	}
	if watts := l.power(h); watts == watts {
		g.Set("idle", watts)
		g.Set("busy-power", watts)
	}
}

// captureGPM keeps one window of the counters.
func captureGPM(c *gpu.Capture, g *gpu.CapturedGPU, h *handle) {
	d := &gpmDevice{handle: h}
	for range 2 {
		window, pipes, why := d.window()
		if why != "" {
			c.Say("# %s", why)
			return
		}
		if d.taken == 2 {
			keep(g, map[string]float32{"sm": window.SM, "tensor": window.Tensor, "dram": window.DRAM, "engine": pipes.Engine,
				"occupancy": pipes.Occupancy, "fp32": pipes.FP32})
		}
		time.Sleep(shortestGPM)
	}
}

// keep sets the ratios that are known.
func keep(g *gpu.CapturedGPU, ratios map[string]float32) {
	for key, v := range ratios {
		if v == v {
			g.Set(key, math.Round(float64(v)*1e4)/1e4)
		}
	}
}

package loader

import (
	"math"

	"github.com/datawait/datawait/analysis/loader/replay"
)

// largest is the greatest number taken for a measurement: 1e15 bytes, seconds or cores are no reading of anything.
const largest = 1e15

// clean returns the parameters with every value that no measurement can have (negative, not a number, absurd) made unknown, so
// that nothing further on needs to ask.
func clean(p Parameters) Parameters {
	s, b, h, e, d := &p.Step, &p.Batch, &p.Host, &p.Epoch, &p.Device
	for _, v := range []*Est{&s.Seconds, &s.Wait, &s.Exposed, &s.Live, &s.Cached, &s.Copy, &b.Wall, &b.CPU, &b.OffCPU, &b.PerReading, &p.Solo.Wall, &p.Solo.OffCPU, &e.Seconds} {
		cleanEst(v)
	}
	for _, v := range []*Num{
		&s.Interference, &s.MainCPU, &s.Fetches, &s.Handoff, &s.HandoffFloor, &s.HandoffReady, &s.HandoffLate,
		&b.ProcessCPU, &b.RunQueue, &b.Collate, &b.CV, &b.Samples, &b.Files, &b.Requests, &b.Read, &b.FromDisk, &b.Bytes, &b.Tensors, &b.Sleeps, &b.ReadTimes, &b.Set,
		&h.Usable, &h.Affinity, &h.Quota, &h.Cpuset, &h.Online, &h.Busy, &h.Foreign, &h.WorkerRunQueue, &h.Throttled,
		&e.WorkerStart, &e.FirstBuild, &e.Wall, &e.Share, &d.Resident, &d.SMActive, &d.SMComputing, &d.Tensor, &d.FP32, &d.DRAM, &d.Power, &d.Launches,
		&d.Clock.Thermal, &d.Clock.Hardware, &d.Clock.PowerCap, &d.Clock.Of, &d.Clock.Steps, &d.Link.Narrow, &d.Link.In,
		&p.Around.Straggler.Build, &p.Around.Again.Read, &p.Around.Again.FromDisk, &p.Around.Growth.Left, &p.Around.Shared.Size, &p.Around.Shared.Free,
	} {
		cleanNum(v)
	}
	if e, ok := d.Clock.Longer.Get(); ok && !(e.Low >= -1 && e.Low <= e.Value && e.Value <= e.High && e.High <= largest) {
		d.Clock.Longer = Est{}
	}
	for _, v := range []*Num{&h.Usable, &h.Affinity, &h.Quota, &h.Cpuset, &h.Online, &s.Fetches} {
		if n, ok := v.Get(); ok && n < 1e-3 {
			*v = missing("a number of cores or fetches cannot be 0")
		}
	}
	p.Host.Affinity = h.affinity()
	p.Args.Workers = max(0, min(p.Args.Workers, maxWorkers))
	p.Host.Ranks = max(p.Host.Ranks, 1)
	if !sound(p.Tape) {
		p.Tape = nil
	}
	var peers []Peer
	for _, o := range p.Peers {
		if sound(o.Tape) && o.Build > 0 && o.Build < 1e6 {
			peers = append(peers, o)
		}
	}
	p.Peers = peers
	return p
}

// sound reports batches whose parts are times.
func sound(t replay.Tape) bool {
	for _, b := range t {
		for _, v := range [...]float32{b.Wait, b.CPU, b.Outside} {
			if !(v >= 0 && v <= largest) {
				return false
			}
		}
	}
	return true
}

// affinity is what the workers' affinity leaves them. Where only the least of all limits was recorded, and it lies below those on
// the whole job, affinity is what is left to explain it.
func (h *Cores) affinity() Num {
	usable, ok := h.Usable.Get()
	if !ok || h.Affinity.IsKnown() {
		return h.Affinity
	}
	inf := math.Inf(1)
	job := min(h.Quota.Or(inf), h.Cpuset.Or(inf), h.Online.Or(inf))
	if math.IsInf(job, 1) || usable >= 0.95*job {
		return h.Affinity
	}
	return some(usable)
}

func cleanNum(v *Num) {
	if n, ok := v.Get(); ok && !(n >= 0 && n <= largest) {
		*v = missing("what was recorded is no measurement")
	}
}

// cleanEst also puts an interval right that does not hold its value.
func cleanEst(v *Est) {
	e, ok := v.Get()
	if !ok {
		return
	}
	if !(e.Value >= 0 && e.Value <= largest) {
		*v = Est{}
		return
	}
	e.Low = clamp(e.Low, 0, e.Value, e.Value)
	e.High = clamp(e.High, e.Value, largest, e.Value)
	*v = someEst(e)
}

// clamp keeps v between two bounds; what is not a number becomes the fallback.
func clamp(v, low, high, fallback float64) float64 {
	if math.IsNaN(v) {
		return fallback
	}
	return math.Max(low, math.Min(high, v))
}

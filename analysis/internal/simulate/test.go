package simulate

import "github.com/datawait/datawait/probe/recording"

// test runs the plan as the hook does: every block is settled first, and its counted part runs from device to device.
func (p *process) test() {
	for range p.job.Warm {
		p.train(0)
	}
	p.write(recording.Mark{Ref: uint16(recording.MarkTestBegan), Begin: uint64(p.now), End: uint64(p.now)}.Encode())
	depth := p.loader.ready(p.now)
	for i, leg := range p.job.Plan {
		p.block = uint32(i + 1)
		if leg == recording.LegLive {
			p.drain(depth)
			p.counted(leg, func() int64 { return p.train(p.block) })
			depth = p.loader.ready(p.now)
			continue
		}
		p.now = p.loader.idle(p.now)
		for range 2 {
			p.cached(leg)
		}
		p.counted(leg, func() int64 { return p.cached(leg) })
	}
	p.write(recording.Mark{Ref: uint16(recording.MarkParked), Begin: uint64(p.now), End: uint64(p.now)}.Encode())
}

// drain throws ready batches away until the queue is as deep as it was in training, then trains one round that does not count.
func (p *process) drain(depth int) {
	for p.loader.ready(p.now) > depth {
		enter, ready := p.now, uint32(p.loader.ready(p.now))
		batch, exit := p.loader.pull(p.now)
		p.now = exit
		p.fetched(recording.FetchDiscarded, enter, exit, uint32(batch), ready, p.block)
	}
	for range max(1, p.job.Workers) {
		p.train(p.block)
	}
}

// counted runs the counted part of a block.
func (p *process) counted(leg recording.Leg, step func() int64) {
	var flags uint8
	if !p.job.Unsynced {
		p.now = max(p.now, p.device.end)
		flags = recording.BlockDevice
	}
	begin, first, wait := p.now, p.step, int64(0)
	for range p.job.BlockSteps {
		wait += step()
	}
	if !p.job.Unsynced {
		p.now = max(p.now, p.device.end)
	}
	p.write(recording.Block{Flags: flags, Ref: uint16(leg), Begin: uint64(begin), End: uint64(p.now), Block: p.block, FirstStep: first,
		Steps: uint32(p.job.BlockSteps), Fetches: uint32(p.job.BlockSteps), Wait: uint64(wait)}.Encode())
}

// cached is a step on a batch from memory.
func (p *process) cached(leg recording.Leg) int64 {
	enter := p.now
	p.now += 20_000
	if leg == recording.LegHostCachedBusy {
		p.loader.free[0] = max(p.loader.free[0], p.now+10*p.job.Compute+1) // workers are kept busy
	}
	p.fetched(recording.FetchCached, enter, p.now, recording.Unknown32, recording.Unknown32, p.block)
	copy := p.job.Copy
	if leg == recording.LegDeviceCached {
		copy = 0
	}
	p.work(copy)
	return 20_000
}

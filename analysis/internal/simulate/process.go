package simulate

import "github.com/datawait/datawait/probe/recording"

// process is one training process at work.
type process struct {
	job     Job
	memory  *recording.Memory
	rank    int
	main    recording.StreamID
	seq     uint32
	now     int64
	device  device
	windows []recording.GPU
	step    uint32
	truth   Truth
	loader  *loader
	epoch   int
	block   uint32
}

func newProcess(j Job, m *recording.Memory, rank int) *process {
	id := uuid(rank)
	local := rank
	d := recording.Declaration{Producer: recording.ProducerMain, Host: "node0", PID: 100 * (rank + 1), Rank: &rank, LocalRank: &local, StartTicks: 7}
	if j.Window > 0 {
		d.GPUUUID = &id
		d.Emulated = true
	}
	main, _ := m.Declare(d)
	p := &process{job: j, memory: m, rank: rank, main: main, now: origin + 200*Millisecond}
	if !j.NoNotes {
		m.AddNote(main, recording.LoaderNote{Loader: 0, Kind: "torch", Dataset: "Simulated"})
	}
	return p
}

func (p *process) write(r recording.Record) uint32 {
	p.memory.Add(p.main, r)
	p.seq++
	return p.seq
}

func (p *process) run() {
	for p.epoch = range p.job.Epochs {
		p.open()
		if len(p.job.Plan) > 0 && p.epoch == 0 {
			p.test()
			p.builds()
			return
		}
		for range p.job.Steps {
			p.train(0)
			if last, ok := p.job.Die[p.rank]; ok && int(p.step) >= last {
				p.builds()
				return
			}
		}
		p.fetchEnd()
		p.builds()
		p.pause()
	}
	p.now = max(p.now, p.device.end)
	p.write(recording.Mark{Ref: uint16(recording.MarkEnded), Begin: uint64(p.now), End: uint64(p.now)}.Encode())
}

// open makes the iterator.
func (p *process) open() {
	begin := p.now
	p.now += p.job.Start
	p.loader = newLoader(p.job, p.rank, p.epoch, p.job.Steps, p.now)
	p.write(recording.Iterator{Begin: uint64(begin), End: uint64(p.now), Epoch: uint32(p.epoch), Workers: uint32(p.job.Workers),
		Length: uint32(p.job.Steps), Prefetch: uint32(p.job.Prefetch)}.Encode())
	for w := range p.job.Workers {
		p.write(recording.Worker{T: uint64(p.now), PID: p.pid(w), Worker: uint32(w), Epoch: uint32(p.epoch)}.Encode())
	}
}

func (p *process) pid(w int) uint32 { return uint32(1000*(p.rank+1) + 100*p.epoch + w) }

// train is one live step.
func (p *process) train(block uint32) (wait int64) {
	enter, ready := p.now, uint32(p.loader.ready(p.now))
	batch, exit := p.loader.pull(p.now)
	p.now = exit
	var flags uint8
	if batch == 0 {
		flags = recording.FetchFirst
	}
	p.fetched(flags, enter, exit, uint32(batch), ready, block)
	if p.job.Workers == 0 {
		p.write(cost(0, exit-enter).Encode())
	}
	p.work(p.job.Copy)
	return exit - enter
}

func (p *process) fetched(flags uint8, enter, exit int64, batch, ready, block uint32) {
	seq := p.write(recording.Fetch{Flags: flags, Enter: uint64(enter), Exit: uint64(exit), Batch: batch, Epoch: uint32(p.epoch),
		Step: p.step, Thread: 1, CPU: recording.Unknown64, Ready: ready, Block: block}.Encode())
	first, second := max(enter, p.device.end), max(exit, p.device.end)
	if !p.job.NoEvents {
		p.write(recording.Exposed{T: uint64(exit), Idle: uint64(second - first), Span: recording.Unknown64, Fetch: seq}.Encode())
	}
	if flags&^recording.FetchFirst == 0 {
		p.truth.Waits = append(p.truth.Waits, exit-enter)
		p.truth.Idles = append(p.truth.Idles, second-first)
	}
}

// work launches a step and ends it.
func (p *process) work(copy int64) {
	p.now += p.job.Host
	duration := p.job.Compute
	if p.loader.busy(max(p.now, p.device.end)) {
		duration += int64(p.job.Contention * float64(p.job.Compute))
	}
	p.now = p.device.launch(p.now, copy+duration, p.job.Depth)
	p.truth.Busy += copy + duration
	p.step++
	p.write(recording.Step{Begin: uint64(p.now), End: uint64(p.now), Step: p.step, Thread: 1, CPU: recording.Unknown64}.Encode())
	p.truth.StepEnds = append(p.truth.StepEnds, p.now)
}

func (p *process) fetchEnd() {
	p.write(recording.Fetch{Flags: recording.FetchEnd, Enter: uint64(p.now), Exit: uint64(p.now + 1000), Batch: uint32(p.job.Steps),
		Epoch: uint32(p.epoch), Step: p.step, Thread: 1, CPU: recording.Unknown64, Ready: 0}.Encode())
	p.now += 1000
}

// pause validates and saves after an epoch.
func (p *process) pause() {
	p.now = max(p.now, p.device.end)
	if p.job.Validation > 0 {
		p.write(recording.Iterator{Ref: 1, Begin: uint64(p.now), End: uint64(p.now + Millisecond), Epoch: uint32(p.epoch), Prefetch: recording.Unknown32}.Encode())
		p.now += Millisecond
	}
	for i := range p.job.Validation {
		enter, flags := p.now, uint8(recording.FetchNoGrad)
		if i == 0 {
			flags |= recording.FetchFirst
		}
		p.now += 3 * Millisecond
		p.write(recording.Fetch{Flags: flags, Ref: 1, Enter: uint64(enter), Exit: uint64(p.now), Batch: uint32(i),
			Epoch: uint32(p.epoch), Step: p.step, Thread: 1, CPU: recording.Unknown64}.Encode())
		p.now = max(p.device.launch(p.now, 2*Millisecond, 0), p.device.end)
	}
	if p.job.Validation > 0 {
		p.write(recording.Fetch{Flags: recording.FetchNoGrad | recording.FetchEnd, Ref: 1, Enter: uint64(p.now), Exit: uint64(p.now), Batch: uint32(p.job.Validation),
			Epoch: uint32(p.epoch), Step: p.step, Thread: 1, CPU: recording.Unknown64}.Encode())
	}
	if p.job.Checkpoint > 0 {
		p.write(recording.Mark{Ref: uint16(recording.MarkCheckpoint), Begin: uint64(p.now), End: uint64(p.now + p.job.Checkpoint)}.Encode())
		p.now += p.job.Checkpoint
	}
}

// builds writes the batches of the epoch, each worker's in its own stream.
func (p *process) builds() {
	streams := map[int]recording.StreamID{}
	for b := range p.loader.sent {
		if p.job.Workers == 0 {
			return // the costs stand behind their fetch
		}
		batch := recording.Batch{Ref: recording.Unknown16, Received: recording.Unknown64, Begin: uint64(p.loader.begins[b]), End: uint64(p.loader.sent[b]),
			Sent: uint64(p.loader.sent[b]), Batch: uint32(b), Samples: 8, Worker: recording.Unknown32}
		w := b % p.job.Workers
		if streams[w] == 0 {
			streams[w], _ = p.memory.Declare(recording.Declaration{Producer: recording.ProducerWorker, Host: "node0", PID: int(p.pid(w)),
				PPID: 100 * (p.rank + 1), Parent: 100 * (p.rank + 1)})
		}
		p.memory.Add(streams[w], batch.Encode(), cost(recording.Unknown16, p.loader.sent[b]-p.loader.begins[b]).Encode())
	}
}

// cost of a batch that took so long.
func cost(ref uint16, wall int64) recording.Cost {
	return recording.Cost{Ref: ref, CPU: uint64(wall / 4), ProcessCPU: uint64(wall / 3), RunQueue: uint64(wall / 8), Collate: uint64(wall / 10),
		Bytes: 1 << 20, Files: 8, Requests: 0, Tensors: 2}
}

package cost

import (
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// rank is one training process of the day: a step ends when its batch has come and the GPU, one step behind, is free again.
type rank struct {
	*node
	number, pid int
	main        *stream
	workers     []*stream
	chance      uint64

	now     int64 // ns, of the training thread
	gpuFree int64 // when the device has finished what was launched
	step    uint32
	epoch   uint32
	batch   uint32
	free    []int64 // per worker: when it has built what it was asked for
	ready   [16]int64
	asked   uint32
	busy    busyTime
	late    []recording.Exposed // device clock readings, some fetches behind
}

// Times of a step.
const (
	compute = int64(140e6)
	host    = int64(6e6)
)

// random is a splitmix64 step: cheap, and the same everywhere.
func (k *rank) random(below int64) int64 {
	k.chance += 0x9e3779b97f4a7c15
	z := k.chance
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64((z ^ z>>31) >> 1 % uint64(below))
}

// play trains up to a time.
func (k *rank) play(until int64) {
	for k.now < until {
		if k.batch == 0 {
			k.open()
		}
		k.train()
	}
}

// open makes an iterator; its workers are kept from epoch to epoch.
func (k *rank) open() {
	begin := k.now
	k.now += int64(30 * time.Millisecond)
	flags := uint8(0)
	if k.epoch > 0 {
		flags = recording.IteratorReset
	}
	k.main.add(recording.Iterator{Flags: flags, Begin: uint64(begin), End: uint64(k.now), Epoch: k.epoch, Workers: uint32(len(k.workers)),
		Length: perEpoch, Prefetch: 2}.Encode())
	for w := range k.workers {
		if k.epoch == 0 {
			k.main.add(recording.Worker{T: uint64(k.now), PID: uint32(k.pid + 1 + w), Worker: uint32(w)}.Encode())
		}
		k.free[w] = k.now
	}
	k.asked = 0
	for range 2 * len(k.workers) {
		k.ask()
	}
}

// ask lets the next worker build the next batch: four of them together a little slower than the GPU computes.
func (k *rank) ask() {
	if k.asked == perEpoch {
		return
	}
	w := int(k.asked) % len(k.workers)
	begin := max(k.now, k.free[w])
	took := int64(len(k.workers))*(compute+int64(40e6)) + k.random(int64(160e6))
	end := begin + took
	k.free[w] = end
	k.ready[k.asked%uint32(len(k.ready))] = end
	s := k.workers[w]
	s.add(recording.Batch{Ref: recording.Unknown16, Received: uint64(begin) - 40_000, Begin: uint64(begin), End: uint64(end), Sent: uint64(end) + 30_000,
		Batch: k.asked, Resumes: k.epoch, Samples: 64, Worker: uint32(w)}.Encode())
	s.add(recording.Cost{Ref: recording.Unknown16, CPU: uint64(took * 9 / 10), ProcessCPU: uint64(took), RunQueue: uint64(took / 50), Collate: uint64(took / 20),
		Bytes: 38 << 20, Files: 64, Requests: recording.Unknown32, Tensors: 2}.Encode())
	s.add(recording.IO{Ref: recording.Unknown16, RChar: 7 << 20, ReadBytes: 7 << 20, Syscalls: 130, Voluntary: 70, Involuntary: 9}.Encode())
	k.asked++
}

// train is one step.
func (k *rank) train() {
	enter := k.now
	exit := max(enter, k.ready[k.batch%uint32(len(k.ready))]+30_000) + 250_000
	flags := uint8(0)
	if k.batch == 0 {
		flags = recording.FetchFirst
	}
	seq := k.main.add(recording.Fetch{Flags: flags, Enter: uint64(enter), Exit: uint64(exit), Batch: k.batch, Epoch: k.epoch, Step: k.step, Thread: uint32(k.pid),
		CPU: 200_000, Ready: 1}.Encode())
	idle := max(0, exit-max(enter, k.gpuFree))
	k.late = append(k.late, recording.Exposed{Flags: recording.ExposedEmu, T: uint64(exit), Idle: uint64(idle), Span: uint64(compute), Fetch: seq})
	if len(k.late) > 8 {
		k.late[0].T = uint64(exit)
		k.main.add(k.late[0].Encode())
		k.late = k.late[:copy(k.late, k.late[1:])]
	}
	k.now = exit
	k.ask()
	k.now += host + k.random(int64(2e6))
	begin := max(k.now, k.gpuFree)
	k.now = max(k.now, k.gpuFree) // one launch may be queued
	k.gpuFree = begin + compute
	k.busy.add(begin, k.gpuFree)
	k.step++
	k.main.add(recording.Step{Begin: recording.Unknown64, End: uint64(k.now), Step: k.step, Thread: uint32(k.pid), CPU: uint64(k.step) * 6_000_000}.Encode())
	if k.batch++; k.batch == perEpoch {
		k.batch = 0
		k.epoch++
	}
}

// busyTime is what a device did and no counter has read yet.
type busyTime struct{ spans [][2]int64 }

func (b *busyTime) add(begin, end int64) { b.spans = append(b.spans, [2]int64{begin, end}) }

// before takes out the busy time that lies before t, in ns.
func (b *busyTime) before(t int64) (ns float32) {
	over := 0
	for i := range b.spans {
		s := &b.spans[i]
		if s[0] >= t {
			break
		}
		ns += float32(min(t, s[1]) - s[0])
		s[0] = min(t, s[1])
		if s[1] <= t {
			over = i + 1
		}
	}
	b.spans = b.spans[:copy(b.spans, b.spans[over:])]
	return ns
}

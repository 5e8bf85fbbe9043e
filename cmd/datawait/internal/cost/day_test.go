package cost

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// day is a long job, written as its agents would have written it. A rank waits, computes and steps; its workers build in turn;
// its GPU's counters follow. All of it comes from arithmetic and a fixed sequence of chances, so every run is the same.
type day struct {
	nodes, ranks, workers int // ranks per node, workers per rank
	length                time.Duration
}

// written is what a recording holds.
type written struct {
	records int
	steps   int // of all ranks
}

const (
	began    = int64(5000e9) // of the agents, on their monotonic clock
	perEpoch = 5000          // steps
)

// write makes the recording in dir, one goroutine per node.
func (d day) write(b testing.TB, dir string) (all written) {
	b.Helper()
	nodes := make([]node, d.nodes)
	errs := make([]error, d.nodes)
	var done sync.WaitGroup
	for i := range nodes {
		nodes[i] = node{day: d, index: i}
		done.Go(func() { errs[i] = nodes[i].record(dir) })
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		all.records += nodes[i].records
		for _, k := range nodes[i].ranks {
			all.steps += int(k.step)
		}
	}
	return all
}

// node is one agent's part.
type node struct {
	day
	index   int
	w       *recording.Writer
	ranks   []*rank
	agent   *stream
	gpus    *stream
	records int
}

// stream numbers the records of one process.
type stream struct {
	id  recording.StreamID
	seq uint32
	buf []recording.Record
}

func (s *stream) add(r recording.Record) uint32 {
	s.seq++
	r.SetSeq(s.seq)
	s.buf = append(s.buf, r)
	return s.seq
}

func (n *node) record(dir string) (err error) {
	host := fmt.Sprintf("node%d", n.index)
	n.w, err = recording.Create(dir, recording.Manifest{Version: "bench", Host: host, Command: []string{"python", "train.py"},
		StartedAt: time.Unix(1_700_000_000, 0), StartedMonotonic: uint64(began)}, recording.Options{})
	if err != nil {
		return err
	}
	if err := n.declare(host); err != nil {
		return err
	}
	end := began + int64(n.length)
	for t, before := began, began; t < end; before = t {
		t = min(end, t+flushAfter(t-began))
		if err := n.write(before, t); err != nil {
			return err
		}
	}
	for _, k := range n.ranks {
		k.main.add(recording.Mark{Ref: uint16(recording.MarkEnded), Begin: uint64(end), End: uint64(end)}.Encode())
	}
	if err := n.hand(); err != nil {
		return err
	}
	return n.w.Close(recording.Ending{At: time.Unix(1_700_000_000, end-began), Monotonic: uint64(end), By: recording.EndedByCommand,
		ExitCode: unit.Some(0), Hook: recording.HookSummary{Attached: true, Spools: len(n.ranks) * (1 + n.workers)}})
}

// flushAfter is how long an agent gathers before it writes, when its run is so old (ns): wrap decides it.
func flushAfter(elapsed int64) int64 {
	return min(max(elapsed/100, int64(time.Second)), int64(30*time.Second))
}

// write plays the job from one flush to the next.
func (n *node) write(from, to int64) error {
	for _, k := range n.ranks {
		k.play(to)
	}
	for t := from; t < to; t += int64(time.Second) {
		n.sample(uint64(t), uint64(min(to, t+int64(time.Second))))
	}
	if err := n.hand(); err != nil {
		return err
	}
	return n.w.Flush()
}

// hand gives the writer what the streams hold.
func (n *node) hand() error {
	for _, s := range n.streams() {
		n.records += len(s.buf)
		if err := n.w.Records(s.id, s.buf); err != nil {
			return err
		}
		s.buf = s.buf[:0]
	}
	return nil
}

func (n *node) streams() []*stream {
	all := []*stream{n.agent, n.gpus}
	for _, k := range n.ranks {
		all = append(append(all, k.main), k.workers...)
	}
	return all
}

func (n *node) declare(host string) error {
	var failed error
	stream := func(d recording.Declaration, notes ...recording.Note) *stream {
		d.Host, d.BootID, d.StartTicks = host, host, 7
		id, err := n.w.Declare(d)
		for _, note := range notes {
			if err == nil {
				err = n.w.Note(id, recording.EncodeNote(note))
			}
		}
		if err != nil {
			failed = err
		}
		return &stream{id: id}
	}
	n.agent = stream(recording.Declaration{Producer: recording.ProducerAgent, PID: 1},
		recording.ClockNote{Monotonic: uint64(began), Realtime: 1_700_000_000e9},
		recording.HostNote{Cores: unit.Some(int64(96))},
		recording.DeviceNameNote{Class: recording.ClassDisk, Name: "nvme0n1", Sort: recording.SortPhysical},
		recording.DeviceNameNote{Class: recording.ClassNet, Name: "eth0", Sort: recording.SortPhysical})
	var notes []recording.Note
	for i := range n.day.ranks {
		notes = append(notes, recording.GPUNote{GPU: uint16(i), UUID: n.uuid(i), Name: "emulated", Source: "emulated", Emulated: true, Grade: "A"})
	}
	n.gpus = stream(recording.Declaration{Producer: recording.ProducerAgent, PID: 2}, notes...)
	for i := range n.day.ranks {
		number, local, uuid := n.index*n.day.ranks+i, i, n.uuid(i)
		world := n.nodes * n.day.ranks
		k := &rank{node: n, number: number, pid: 1000 + 100*i, chance: uint64(number)*7919 + 1}
		k.main = stream(recording.Declaration{Producer: recording.ProducerMain, PID: k.pid, Rank: &number, LocalRank: &local, WorldSize: &world, GPUUUID: &uuid,
			Emulated: true}, recording.LoaderNote{Kind: "torch", Dataset: "Images", Length: unit.Some(int64(perEpoch)), Arguments: recording.LoaderArguments{
			Workers: unit.Some(int64(n.workers)), PrefetchFactor: unit.Some(int64(2)), BatchSize: unit.Some(int64(64)), PersistentWorkers: unit.Some(true)}})
		for w := range n.workers {
			k.workers = append(k.workers, stream(recording.Declaration{Producer: recording.ProducerWorker, PID: k.pid + 1 + w, PPID: k.pid, Parent: k.pid}))
		}
		k.free = make([]int64, n.workers)
		k.now = began + int64(2*time.Second)
		n.ranks = append(n.ranks, k)
	}
	return failed
}

func (n *node) uuid(gpu int) string { return fmt.Sprintf("GPU-emulated-%d-%d", n.index, gpu) }

// sample writes what the agent and its GPU child read of one second.
func (n *node) sample(from, to uint64) {
	for i, k := range n.ranks {
		busy := k.busy.before(int64(to)) / float32(to-from)
		n.gpus.add(recording.GPU{Flags: recording.GPUEmulated | recording.GPUHeldKnown | recording.GPUHeld, Ref: uint16(i), Begin: from, End: to,
			SM: 0.9 * busy, Resident: busy, Tensor: 0.4 * busy, DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan}.Encode())
		n.agent.add(process(recording.RoleMain, k.pid, from, to, 0.4).Encode())
		for w := range k.workers {
			n.agent.add(process(recording.RoleWorker, k.pid+1+w, from, to, 0.8).Encode())
		}
	}
	for _, half := range [][2]uint64{{from, (from + to) / 2}, {(from + to) / 2, to}} {
		begin, end := half[0], half[1]
		n.agent.add(recording.Machine{Begin: begin, End: end, Busy: 30, Runnable: 31, MemoryAvailable: 1 << 38, Cores: 96, Foreign: 0.5}.Encode())
		n.agent.add(recording.Limits{Begin: begin, End: end, Quota: nan, CPUSet: 96, Usable: 96, Throttled: nan, ThrottledTime: recording.Unknown64,
			MemoryLimit: recording.Unknown64}.Encode())
		for group := range uint16(2) {
			n.agent.add(recording.Pressure{Ref: group, Begin: begin, End: end, CPUSome: 0.01, IOSome: 0.02}.Encode())
		}
		n.agent.add(recording.Device{Begin: begin, End: end, Read: 4e8, Ops: 3000, Busy: 0.3, ReadWait: 1e-4}.Encode(recording.KindDisk))
		n.agent.add(recording.Device{Begin: begin, End: end, Read: 1e6, Ops: nan, Busy: nan, ReadWait: nan}.Encode(recording.KindNet))
	}
}

var nan = float32(math.NaN())

func process(role recording.ProcessRole, pid int, from, to uint64, cores float32) recording.Process {
	return recording.Process{Ref: uint16(role), Begin: from, End: to, PID: uint32(pid), CPU: cores, System: cores / 10, RunQueue: 0.01,
		RSS: 1 << 30, Threads: 8, Read: 1e7, Received: 0}
}

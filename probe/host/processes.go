package host

import (
	"errors"
	"io/fs"
	"os"

	"github.com/datawait/datawait/probe/recording"
)

// maxThreads bounds how many threads of one process are read; with more, its run queue is unknown.
const maxThreads = 1024

// processSample is what one process had used when it was last read.
type processSample struct {
	start      uint64
	at         uint64 // ns
	own        uint64 // ticks
	system     uint64 // ticks
	read       uint64 // bytes from block devices
	received   uint64 // bytes over TCP
	receivedAt uint64 // ns
}

// processProbe keeps the previous sample of each process of the job.
type processProbe struct {
	before map[int]processSample
	queues map[int]*threadQueues
	tids   []int
	batch  []recording.Record
}

var pageSize = uint64(os.Getpagesize())

// sampleProcesses writes one PROCESS record for each process of the job that was there at the last sample.
func (h *Host) sampleProcesses() error {
	if err := h.tree.scan(); err != nil {
		return err
	}
	p := &h.processes
	if p.before == nil {
		p.before, p.queues = map[int]processSample{}, map[int]*threadQueues{}
	}
	p.batch = p.batch[:0]
	for _, pid := range h.tree.order {
		if m := h.tree.members[pid]; !m.stat.ended() {
			h.sampleProcess(m)
		}
	}
	for pid := range p.before {
		if h.tree.members[pid] == nil {
			delete(p.before, pid)
			h.forgetThreads(pid)
		}
	}
	return h.out.Append(p.batch...)
}

func (h *Host) sampleProcess(m *member) {
	p := &h.processes
	cur := processSample{start: m.start, at: m.at, own: m.stat.own(), system: m.stat.system, read: h.readBytes(m)}
	cur.received, cur.receivedAt = h.sockets.received(m)
	queue := h.waited(m)
	before, seen := p.before[m.pid]
	p.before[m.pid] = cur
	if !seen || before.start != m.start || cur.at <= before.at {
		return
	}
	w := cur.at - before.at
	r := recording.Process{Ref: uint16(m.role), Begin: before.at, End: cur.at, PID: uint32(m.pid),
		CPU:      cores(growth(cur.own, before.own), w),
		System:   cores(growth(cur.system, before.system), w),
		RunQueue: perSecond(queue, w) / 1e9,
		RSS:      m.stat.resident(),
		Threads:  known32(m.stat.threads),
		Read:     perSecond(growth(cur.read, before.read), w),
		Received: perSecond(growth(cur.received, before.received), growth(cur.receivedAt, before.receivedAt)),
	}
	p.batch = append(p.batch, r.Encode())
}

// resident returns the memory a process has in RAM, shared pages included, in bytes. One that has none has given it back already, and ends.
func (s processStat) resident() uint64 {
	if s.rss == 0 || s.rss > unknown/pageSize {
		return unknown
	}
	return s.rss * pageSize
}

// readBytes returns what a process read from block devices. The file shows itself to whoever may trace the process.
func (h *Host) readBytes(m *member) uint64 {
	b, err := h.files.readHeld(&m.ioFile, h.files.ofProcess(m.pid, "io"))
	switch {
	case err == nil:
		return parseReadBytes(b)
	case errors.Is(err, fs.ErrNotExist) && exists(h.files.ofProcess(m.pid, "stat")):
		h.because("read bytes", "this kernel does not count them (CONFIG_TASK_IO_ACCOUNTING)")
	case !gone(err):
		h.because("read bytes", unreadable("io", err))
	}
	return unknown
}

package host

import "strconv"

// threadQueues sums the time the threads of one process waited for a CPU. Threads come and go, so the sum of their counters
// may fall; growth is taken thread by thread. What a thread waited for after its last sample is lost when it ends.
type threadQueues struct {
	start   uint64         // of the process
	before  map[int]uint64 // ns waited, by thread, at the previous sample; nil before the first
	cur     map[int]uint64
	growth  uint64 // ns since the previous sample
	measure bool   // some thread tells
}

func newThreadQueues(start uint64) *threadQueues {
	return &threadQueues{start: start, cur: map[int]uint64{}}
}

// add takes one thread's counter. A thread that is new since the previous sample, or has the number of one that ended,
// waited for all of it since.
func (q *threadQueues) add(tid int, waited uint64) {
	if waited == unknown {
		return
	}
	q.measure = true
	q.cur[tid] = waited
	if before, ok := q.before[tid]; ok && before <= waited {
		waited -= before
	}
	q.growth += waited
}

// end closes a sample and returns the nanoseconds waited since the previous one; unknown at the first sample, and where no
// thread tells.
func (q *threadQueues) end() (waited uint64) {
	waited = q.growth
	if !q.measure || q.before == nil {
		waited = unknown
	}
	if q.before == nil {
		q.before = map[int]uint64{}
	}
	q.before, q.cur = q.cur, q.before
	clear(q.cur)
	q.growth, q.measure = 0, false
	return waited
}

// waited returns the nanoseconds a process's threads were runnable and did not run since the previous sample.
func (h *Host) waited(m *member) uint64 {
	p := &h.processes
	q := p.queues[m.pid]
	if q == nil || q.start != m.start {
		q = newThreadQueues(m.start)
		p.queues[m.pid] = q
	}
	var err error
	folder := h.files.ofProcess(m.pid, "task")
	if p.tids, err = h.files.numbers(folder, p.tids[:0]); err != nil || len(p.tids) > maxThreads {
		delete(p.queues, m.pid)
		return unknown
	}
	for _, tid := range p.tids {
		if b, err := h.files.read(folder + "/" + strconv.Itoa(tid) + "/schedstat"); err == nil {
			q.add(tid, parseRunQueue(b))
		}
	}
	return q.end()
}

package host

import "strconv"

// thread is one thread of a process of the job.
type thread struct {
	file   held
	waited uint64 // ns runnable and not running, at the last sample
	known  bool   // waited was read
	listed int    // the sample that found it last
}

// threadQueues sums the time the threads of one process waited for a CPU. Threads come and go, so the sum of their counters
// may fall; growth is taken thread by thread. What a thread waited for after its last sample is lost when it ends.
type threadQueues struct {
	start   uint64          // of the process
	threads map[int]*thread // by number
	samples int
	growth  uint64 // ns, in this sample
	tells   bool   // some thread was read in this sample
}

func newThreadQueues(start uint64) *threadQueues {
	return &threadQueues{start: start, threads: map[int]*thread{}}
}

// meet returns a thread that was listed.
func (q *threadQueues) meet(tid int) *thread {
	t := q.threads[tid]
	if t == nil {
		t = &thread{}
		q.threads[tid] = t
	}
	t.listed = q.samples + 1
	return t
}

// add takes a thread's counter. One that is new since the previous sample, or has the number of one that ended, waited for
// all of it since.
func (q *threadQueues) add(t *thread, waited uint64) {
	if waited == unknown {
		return
	}
	q.tells = true
	if t.known && t.waited <= waited {
		q.growth += waited - t.waited
	} else {
		q.growth += waited
	}
	t.waited, t.known = waited, true
}

// end closes a sample and returns the nanoseconds waited since the previous one; unknown at the first sample, and where no
// thread tells.
func (q *threadQueues) end() (waited uint64) {
	waited = q.growth
	if !q.tells || q.samples == 0 {
		waited = unknown
	}
	q.samples++
	q.growth, q.tells = 0, false
	return waited
}

// waited returns the nanoseconds a process's threads were runnable and did not run since the previous sample.
func (h *Host) waited(m *member) uint64 {
	p := &h.processes
	q := p.queues[m.pid]
	if q == nil || q.start != m.start {
		h.forgetThreads(m.pid)
		q = newThreadQueues(m.start)
		p.queues[m.pid] = q
	}
	var err error
	folder := h.files.ofProcess(m.pid, "task")
	if p.tids, err = h.files.numbers(folder, p.tids[:0]); err != nil || len(p.tids) > maxThreads {
		h.forgetThreads(m.pid)
		return unknown
	}
	for _, tid := range p.tids {
		t := q.meet(tid)
		path := ""
		if t.file.handle == 0 {
			path = folder + "/" + strconv.Itoa(tid) + "/schedstat"
		}
		if b, err := h.files.readHeld(&t.file, path); err == nil {
			q.add(t, parseRunQueue(b))
		}
	}
	waited := q.end()
	for tid, t := range q.threads {
		if t.listed != q.samples {
			h.files.release(&t.file)
			delete(q.threads, tid)
		}
	}
	return waited
}

// forgetThreads closes the files of a process's threads.
func (h *Host) forgetThreads(pid int) {
	if q := h.processes.queues[pid]; q != nil {
		for _, t := range q.threads {
			h.files.release(&t.file)
		}
		delete(h.processes.queues, pid)
	}
}

package simulate

// loader is PyTorch's: W·P batches are asked for when the iterator is made, one more per batch delivered; worker b mod W builds
// batch b; delivery is in order.
type loader struct {
	job    Job
	rank   int
	epoch  int
	asked  int
	next   int
	free   []int64 // per worker
	begins []int64
	sent   []int64 // per batch
	length int
	turn   int64 // when the next worker may take its turn
}

func newLoader(j Job, rank, epoch, length int, now int64) *loader {
	l := &loader{job: j, rank: rank, epoch: epoch, length: length, free: make([]int64, j.Workers)}
	for i := range l.free {
		l.free[i] = now
	}
	for range j.Workers * j.Prefetch {
		l.ask(now)
	}
	return l
}

func (l *loader) ask(now int64) {
	if l.asked == l.length {
		return
	}
	w := l.asked % len(l.free)
	begin := max(now, l.free[w])
	if l.job.Turn > 0 {
		begin = max(begin, l.turn) + l.job.Turn
		l.turn = begin
	}
	l.free[w] = begin + l.job.Build(l.rank, l.epoch, l.asked)
	l.begins = append(l.begins, begin)
	l.sent = append(l.sent, l.free[w])
	l.asked++
}

// pull is next(): it returns when the batch is there.
func (l *loader) pull(now int64) (batch int, exit int64) {
	b := l.next
	l.next++
	if l.job.Workers == 0 {
		l.begins = append(l.begins, now)
		l.sent = append(l.sent, now+l.job.Build(l.rank, l.epoch, b))
		return b, l.sent[b]
	}
	exit = max(now, l.sent[b]) + l.job.Handoff
	l.ask(exit)
	return b, exit
}

// ready counts batches built and waiting.
func (l *loader) ready(now int64) int {
	n := 0
	for b := l.next; b < l.asked; b++ {
		if l.sent[b] <= now {
			n++
		}
	}
	return n
}

// idle is when all workers have nothing left to do.
func (l *loader) idle(now int64) int64 {
	for _, t := range l.free {
		now = max(now, t)
	}
	return now
}

// busy reports whether a worker builds at that time.
func (l *loader) busy(now int64) bool { return len(l.free) > 0 && l.idle(0) > now }

package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

func newRank(node *Node, d recording.Declaration, first int) *Rank {
	return &Rank{Node: node, Declaration: d, first: first, Begin: Unknown, End: Unknown, TestBegan: Unknown}
}

// mainFold takes the records of a training process.
type mainFold struct {
	rank   *Rank
	bad    *uint64
	builds map[uint16]*Builds // by loader: what the process built itself
	next   uint32             // seq that comes next; 0 = none came yet
	lost   int64              // when the records that are missing here began to be; Unknown if none are
}

// take is the hot loop of a report: a day of sixteen ranks is fifty million records.
func (m *mainFold) take(records []recording.Record) {
	for i := range records {
		rec := &records[i]
		ok := true
		if rec.Seq() != m.next {
			m.skipped(rec.Seq())
		}
		m.next = rec.Seq() + 1
		switch rec.Kind() {
		case recording.KindFetch:
			ok = m.rank.fetch(rec)
		case recording.KindStep:
			ok = m.rank.step(rec)
		case recording.KindExposed:
			ok = m.rank.exposed(rec)
		case recording.KindIterator:
			ok = m.rank.iterator(rec)
		case recording.KindMark:
			ok = m.rank.mark(rec)
		case recording.KindBlock:
			ok = m.rank.block(rec)
		case recording.KindSolo:
			m.rank.solos = append(m.rank.solos, rec.Solo())
		case recording.KindWorker:
			m.rank.workers = append(m.rank.workers, rec.Worker())
		case recording.KindBatch:
			ok = m.batch(rec)
		case recording.KindCost:
			m.own(rec.Ref()).cost(rec)
		case recording.KindIO:
			m.own(rec.Ref()).io(rec)
		}
		if !ok {
			*m.bad++
		}
		if m.lost != Unknown && m.rank.End > m.lost {
			m.rank.Gaps = append(m.rank.Gaps, Gap{m.lost, m.rank.End})
			m.lost = Unknown
		}
	}
}

// skipped notes that records are missing before this one: the ring was overrun, or what was read of it was torn. A stream that
// comes a second time, or begins anew, misses nothing.
func (m *mainFold) skipped(seq uint32) {
	if behind := int32(seq - m.next); behind < 0 || m.next == 0 && seq <= 1 {
		return
	}
	if m.lost == Unknown {
		m.lost = max(m.rank.End, 0)
	}
}

func (r *Rank) fetch(rec *recording.Record) bool {
	f := rec.Fetch()
	enter, exit, ok := span(f.Enter, f.Exit)
	if !ok {
		return false
	}
	if f.CPU < latest {
		r.FetchCPU += int64(f.CPU)
		r.FetchClocked++
	}
	r.Fetches = append(roomy(r.Fetches), Fetch{Enter: enter, Exit: exit, Idle: Unknown, Seq: rec.Seq(), Batch: f.Batch, Epoch: f.Epoch,
		Loader: f.Ref, Block: uint8(min(f.Block, 255)), Flags: f.Flags})
	r.seen(enter, exit)
	if f.Flags&recording.FetchOffThread == 0 {
		r.threads.count(f.Thread)
	}
	if f.Flags&recording.FetchCached != 0 {
		r.test(enter)
	}
	return true
}

func (r *Rank) step(rec *recording.Record) bool {
	s := rec.Step()
	end, ok := at(s.End)
	if !ok {
		return false
	}
	r.Steps = append(roomy(r.Steps), Step{End: end, CPU: maybe(s.CPU), Number: s.Step, Thread: s.Thread})
	r.seen(end, end)
	return true
}

func (r *Rank) iterator(rec *recording.Record) bool {
	it := rec.Iterator()
	begin, end, ok := span(it.Begin, it.End)
	if !ok {
		return false
	}
	r.Iterators = append(r.Iterators, Iterator{Begin: begin, End: end, Loader: it.Ref, Reset: it.Flags&recording.IteratorReset != 0,
		Epoch: it.Epoch, Workers: it.Workers, Length: it.Length, Prefetch: it.Prefetch})
	r.seen(begin, end)
	return true
}

func (r *Rank) mark(rec *recording.Record) bool {
	m := rec.Mark()
	begin, end, ok := span(m.Begin, m.End)
	if !ok {
		return false
	}
	r.Marks = append(r.Marks, Mark{Begin: begin, End: end, Code: recording.MarkCode(m.Ref), Value: m.Value})
	r.seen(begin, end)
	switch recording.MarkCode(m.Ref) {
	case recording.MarkTestBegan:
		r.test(begin)
	case recording.MarkParked:
		r.Parked = true
	case recording.MarkEnded:
		r.Finished = true
	}
	return true
}

func (r *Rank) block(rec *recording.Record) bool {
	b := rec.Block()
	begin, end, ok := span(b.Begin, b.End)
	if !ok || b.Wait >= latest {
		return false
	}
	r.Blocks = append(r.Blocks, b)
	r.seen(begin, end)
	if recording.Leg(b.Ref) != recording.LegLive {
		r.test(begin)
	}
	return true
}

// test notes the first sign of the cached-data test: the mark, or what only the test writes.
func (r *Rank) test(t int64) {
	if r.TestBegan == Unknown || t < r.TestBegan {
		r.TestBegan = t
	}
}

// exposed gives the device clock's reading to its fetch. Readings come some fetches late and in order, so the search starts
// where the last one ended.
func (r *Rank) exposed(rec *recording.Record) bool {
	e := rec.Exposed()
	i, ok := r.find(e.Fetch)
	if !ok || e.Idle >= latest {
		return false
	}
	f := &r.Fetches[i]
	if f.Idle == Unknown {
		r.Exposures++
	}
	f.Idle = min(int64(e.Idle), f.Wait()) // events cost a little more than the wait they enclose
	r.Emulated = r.Emulated || e.Flags&recording.ExposedEmu != 0
	return true
}

func (r *Rank) find(seq uint32) (int, bool) {
	for i := r.cursor; i < len(r.Fetches) && i < r.cursor+64; i++ {
		if r.Fetches[i].Seq == seq {
			r.cursor = i
			return i, true
		}
	}
	i, ok := slices.BinarySearchFunc(r.Fetches, seq, func(f Fetch, seq uint32) int { return cmp.Compare(f.Seq, seq) })
	if ok {
		r.cursor = i
	}
	return i, ok
}

// note keeps what a stream reported apart from its records.
func (r *Rank) note(n *recording.Notes) {
	r.Notes.Loaders = append(r.Notes.Loaders, n.Loaders...)
	r.Notes.HookErrors = append(r.Notes.HookErrors, n.HookErrors...)
	r.Notes.SaveGuards = append(r.Notes.SaveGuards, n.SaveGuards...)
	r.Notes.Sums = append(r.Notes.Sums, n.Sums...)
	r.Notes.HookCosts = append(r.Notes.HookCosts, n.HookCosts...)
	r.Notes.Devices = append(r.Notes.Devices, n.Devices...)
	r.Notes.LegsSkipped = append(r.Notes.LegsSkipped, n.LegsSkipped...)
	for _, l := range n.Lost {
		r.Lost += l.Records
	}
}

// GPU returns the UUID of the device the process uses, by its declaration or by what it said later; "" if it never did.
func (r *Rank) GPU() string {
	if uuid := r.Declaration.GPUUUID; uuid != nil && *uuid != "" {
		return *uuid
	}
	for _, d := range r.Notes.Devices {
		if uuid := d.GPUUUID.Or(""); uuid != "" {
			return uuid
		}
	}
	return ""
}

// summed reports whether totals tell of fetches where no record does.
func (r *Rank) summed() bool {
	for _, s := range r.Notes.Sums {
		if s.Fetches.Or(0) > 0 {
			return true
		}
	}
	return false
}

// order sorts what a damaged or doubled recording may have shuffled, and drops what is there twice.
func (r *Rank) order() {
	if !slices.IsSortedFunc(r.Fetches, byEnter) {
		slices.SortStableFunc(r.Fetches, byEnter)
	}
	r.Fetches = slices.CompactFunc(r.Fetches, func(a, b Fetch) bool { return a.Enter == b.Enter && a.Exit == b.Exit && a.Seq == b.Seq })
	r.Steps = slices.DeleteFunc(r.Steps, r.foreign())
	byEnd := func(a, b Step) int { return cmp.Compare(a.End, b.End) }
	if !slices.IsSortedFunc(r.Steps, byEnd) {
		slices.SortStableFunc(r.Steps, byEnd)
	}
	// Of several optimizers one is counted, and the others' steps carry its number unchanged.
	r.Steps = slices.CompactFunc(r.Steps, func(a, b Step) bool { return a.Number == b.Number || a.End == b.End })
	slices.SortStableFunc(r.Iterators, func(a, b Iterator) int { return cmp.Compare(a.Begin, b.Begin) })
	r.Iterators = slices.Compact(r.Iterators)
	slices.SortStableFunc(r.Marks, func(a, b Mark) int { return cmp.Compare(a.Begin, b.Begin) })
	r.Marks = slices.Compact(r.Marks)
	slices.SortStableFunc(r.Blocks, func(a, b recording.Block) int { return cmp.Compare(a.Block, b.Block) })
	r.Blocks = slices.CompactFunc(r.Blocks, func(a, b recording.Block) bool { return a.Block == b.Block })
}

func byEnter(a, b Fetch) int { return cmp.Compare(a.Enter, b.Enter) }

// foreign tells optimizer steps of another thread than the one that fetches; where the training thread makes none, all count.
func (r *Rank) foreign() func(Step) bool {
	training, most := r.threads.busiest()
	own := slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Thread == training })
	return func(s Step) bool { return most > 0 && own && s.Thread != training }
}

// tally counts fetches per thread. Nearly all come from one, so the last one is counted apart from the map.
type tally struct {
	last uint32
	n    int
	rest map[uint32]int
}

func (t *tally) count(thread uint32) {
	if thread == t.last {
		t.n++
		return
	}
	t.flush()
	t.last, t.n = thread, 1
}

func (t *tally) flush() {
	if t.rest == nil {
		t.rest = map[uint32]int{}
	}
	if t.n > 0 && len(t.rest) < 1<<16 {
		t.rest[t.last] += t.n
	}
	t.n = 0
}

// busiest returns the thread with the most fetches, the smallest of equals.
func (t *tally) busiest() (thread uint32, most int) {
	t.flush()
	for id, n := range t.rest {
		if n > most || n == most && id < thread {
			thread, most = id, n
		}
	}
	return thread, most
}

package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// mainFold takes the records of one stream of a training process, those that its survey kept apart.
type mainFold struct {
	rank   *Rank
	room   *Room
	bad    uint64
	builds map[uint16]*Builds // by loader: what the process built itself
	stacks *stackFold
}

// take is the hot loop of a report: a day of sixteen ranks is fifty million records.
func (m *mainFold) take(records []recording.Record) {
	for i := range records {
		rec := &records[i]
		ok := true
		switch rec.Kind() {
		case recording.KindFetch:
			ok = m.rank.fetch(rec)
		case recording.KindStep:
			ok = m.rank.step(rec)
		case recording.KindExposed:
			ok = m.rank.exposed(rec)
		case recording.KindBatch:
			ok = m.batch(rec)
		case recording.KindCost:
			m.own(rec.Ref()).cost(rec)
		case recording.KindIO:
			m.own(rec.Ref()).io(rec)
		case recording.KindStack, recording.KindTransform, recording.KindSampler:
			ok = m.stacks.take(rec)
		}
		if !ok {
			m.bad++
		}
	}
}

func (r *Rank) fetch(rec *recording.Record) bool {
	var f recording.Fetch
	rec.FetchInto(&f)
	enter, exit, ok := span(f.Enter, f.Exit)
	if !ok {
		return false
	}
	if f.CPU < recording.Latest {
		r.FetchCPU += int64(f.CPU)
		r.FetchClocked++
	}
	g := another(&r.Fetches)
	g.Enter, g.Exit, g.Idle, g.Seq, g.Batch, g.Epoch = enter, exit, Unknown, rec.Seq(), f.Batch, f.Epoch
	g.Loader, g.Block, g.Flags = f.Ref, uint8(min(f.Block, 255)), f.Flags
	if f.Flags&recording.FetchOffThread == 0 {
		r.threads.count(f.Thread)
	}
	return true
}

func (r *Rank) step(rec *recording.Record) bool {
	var s recording.Step
	rec.StepInto(&s)
	end, ok := at(s.End)
	if !ok {
		return false
	}
	made := another(&r.Steps)
	made.End, made.CPU, made.Number, made.Thread = end, maybe(s.CPU), s.Step, s.Thread
	return true
}

// exposed gives the device clock's reading to its fetch. Readings come some fetches late and in order, so the search starts
// where the last one ended.
func (r *Rank) exposed(rec *recording.Record) bool {
	var e recording.Exposed
	rec.ExposedInto(&e)
	i, ok := r.find(e.Fetch)
	if !ok || e.Idle >= recording.Latest {
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

// order sorts what a damaged or doubled recording may have shuffled, and drops what is there twice.
func (r *Rank) order() {
	if r.ordered() {
		return
	}
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
}

// ordered reports what holds of nearly every recording: each fetch begins later than the one before it, and each step ends later, has
// another number and is of the same thread. Then nothing is out of order or there twice, and of one thread's steps all count or none.
func (r *Rank) ordered() bool {
	for i := 1; i < len(r.Fetches); i++ {
		if r.Fetches[i].Enter <= r.Fetches[i-1].Enter {
			return false
		}
	}
	for i := 1; i < len(r.Steps); i++ {
		if s, before := &r.Steps[i], &r.Steps[i-1]; s.End <= before.End || s.Number == before.Number || s.Thread != before.Thread {
			return false
		}
	}
	return true
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

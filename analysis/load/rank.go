package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

func newRank(node *Node, d recording.Declaration) *Rank {
	return &Rank{Node: node, Declaration: d, Begin: Unknown, End: Unknown, Gone: Unknown, TestBegan: Unknown}
}

// survey goes through the records of the process: it keeps the rare ones, counts the many, and sees when all of it was and where
// something is missing. Records are counted when the rank is loaded.
func (r *Rank) survey() (found Reading, err error) {
	for _, from := range r.sources {
		p := pass{rank: r, lost: Unknown}
		if _, err := from.read(p.take); err != nil {
			return found, err
		}
		found.Bad += p.bad
	}
	r.orderRare()
	return found, nil
}

// pass goes through one stream of a training process.
type pass struct {
	rank *Rank
	bad  uint64 // of the rare ones
	next uint32 // seq that comes next; 0 = none came yet
	lost int64  // when the records that are missing here began to be; Unknown if none are
}

func (p *pass) take(records []recording.Record) {
	r := p.rank
	for i := range records {
		rec := &records[i]
		ok := true
		if rec.Seq() != p.next {
			p.skipped(rec.Seq())
		}
		p.next = rec.Seq() + 1
		switch rec.Kind() {
		case recording.KindFetch:
			r.passFetch(rec)
		case recording.KindStep:
			r.passStep(rec)
		case recording.KindIterator:
			ok = r.iterator(rec)
		case recording.KindMark:
			ok = r.mark(rec)
		case recording.KindBlock:
			ok = r.block(rec)
		case recording.KindSolo:
			r.solos = append(r.solos, rec.Solo())
		case recording.KindWorker:
			r.claims = append(r.claims, rec.Worker())
		}
		if !ok {
			p.bad++
		}
		if p.lost != Unknown && r.End > p.lost {
			r.Gaps = append(r.Gaps, Gap{p.lost, r.End})
			p.lost = Unknown
		}
	}
}

// skipped notes that records are missing before this one: the ring was overrun, or what was read of it was torn. A stream that
// comes a second time, or begins anew, misses nothing.
func (p *pass) skipped(seq uint32) {
	if behind := int32(seq - p.next); behind < 0 || p.next == 0 && seq <= 1 {
		return
	}
	if p.lost == Unknown {
		p.lost = max(p.rank.End, 0)
	}
}

func (r *Rank) passFetch(rec *recording.Record) {
	enter, exit, ok := span(rec.Times())
	if !ok {
		return
	}
	r.fetches++
	r.seen(enter, exit)
	if rec.Flags()&recording.FetchCached != 0 {
		r.test(enter)
	}
}

func (r *Rank) passStep(rec *recording.Record) {
	_, end := rec.Times()
	if end, ok := at(end); ok {
		r.steps++
		r.seen(end, end)
	}
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
	if !ok || b.Wait >= recording.Latest {
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

// note keeps what a stream reported apart from its records.
func (r *Rank) note(n *recording.Notes) {
	r.Notes.Loaders = append(r.Notes.Loaders, n.Loaders...)
	r.Notes.HookErrors = append(r.Notes.HookErrors, n.HookErrors...)
	r.Notes.SaveGuards = append(r.Notes.SaveGuards, n.SaveGuards...)
	r.Notes.Sums = append(r.Notes.Sums, n.Sums...)
	r.Notes.HookCosts = append(r.Notes.HookCosts, n.HookCosts...)
	r.Notes.Devices = append(r.Notes.Devices, n.Devices...)
	r.Notes.OtherLoaders = append(r.Notes.OtherLoaders, n.OtherLoaders...)
	r.Notes.Functions = append(r.Notes.Functions, n.Functions...)
	r.Notes.Calls = append(r.Notes.Calls, n.Calls...)
	r.Notes.Transforms = append(r.Notes.Transforms, n.Transforms...)
	r.Notes.LegsSkipped = append(r.Notes.LegsSkipped, n.LegsSkipped...)
	r.Notes.Trials = append(r.Notes.Trials, n.Trials...)
	for _, e := range n.Ended {
		if t, ok := at(e.T); ok {
			r.Gone, r.Outlived = t, e.Running
		}
	}
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

// orderRare sorts what a damaged or doubled recording may have shuffled, and drops what is there twice.
func (r *Rank) orderRare() {
	slices.SortStableFunc(r.Iterators, func(a, b Iterator) int { return cmp.Compare(a.Begin, b.Begin) })
	r.Iterators = slices.Compact(r.Iterators)
	slices.SortStableFunc(r.Marks, func(a, b Mark) int { return cmp.Compare(a.Begin, b.Begin) })
	r.Marks = slices.Compact(r.Marks)
	slices.SortStableFunc(r.Blocks, func(a, b recording.Block) int { return cmp.Compare(a.Block, b.Block) })
	r.Blocks = slices.CompactFunc(r.Blocks, func(a, b recording.Block) bool { return a.Block == b.Block })
}

package live

import (
	"cmp"
	"math"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
)

// tenancy is a row of Tenancies on its way: closed episodes, and those that are not.
type tenancy struct {
	Tenancy
	open    int    // episodes that are not over
	untold  int    // episodes that are not closed: not all that belongs to them has been told
	ended   uint64 // ns
	carried bool
	resumes uint64 // ns up to which an earlier agent has booked, while the tenant had the GPU; 0 = it had not, or that is made up for
}

type tenancyKey struct {
	gpu    string
	tenant Tenant
}

// episode is a stretch in which one tenant has a GPU and no process of its ends. It has a ledger of its own, so a ledger never grows
// old, and a process that is gone says nothing in what follows.
//
//	process 1  [------------------]
//	process 2          [----------------------]
//	scheduler  [----------------------------------------]
//	episodes   |------------------|-----------|---------|
type episode struct {
	of         *tenancy
	gpu        *device
	begin, end uint64 // ns; end 0 = it goes on
	book       *ledger.Book
	agent      recording.StreamID
	host       int64 // ns booked as the host's so far
	unseen     int64 // ns of it in which the process fetched from a loader that the hook does not see: it may have waited
	streams    map[*stream]recording.StreamID
}

// impatience is for how long, in ns, a wait is held back for a device's clock that has never been seen.
const impatience = 60e9

// mostPending is how many spans of a process wait for being settled: half a minute of two thousand steps a second. 3 MiB.
const mostPending = 1 << 17

// assign begins and ends episodes as GPUs change hands.
func (n *Node) assign() {
	n.locate()
	for _, d := range sorted(n.devices, func(a, b *device) int { return cmp.Compare(a.id, b.id) }) {
		holders, known := d.holders()
		current := d.current()
		var next Tenant
		switch {
		case !known || len(holders) == 0:
			if current != nil {
				current.over(d.changed())
			}
			d.turned = false
			continue
		case len(holders) == 1:
			next = holders[0]
		default:
			next = Tenant{Job: Shared}
		}
		if current != nil && current.of.Tenant == next && !d.turned {
			continue
		}
		begin := d.begins(next)
		if current != nil {
			current.over(max(min(d.changed(), n.now), current.begin))
			begin = current.end // never before what is booked
		}
		d.turned = false
		d.begin(next, begin)
	}
	for _, s := range n.streams {
		s.flush()
	}
}

// current is the episode that goes on, nil without one.
func (d *device) current() *episode {
	if n := len(d.episodes); n > 0 && d.episodes[n-1].end == 0 {
		return d.episodes[n-1]
	}
	return nil
}

// changed is when a GPU was left by the process that ended last, or found to be in other hands.
func (d *device) changed() uint64 {
	if d.turned && d.left != 0 {
		return min(d.left, d.node.now)
	}
	return d.node.now
}

// begins is when a tenant has a GPU that nobody had: since its process opened its ring, or since a scheduler was heard to say so.
func (d *device) begins(t Tenant) uint64 {
	begin := d.node.now
	for _, s := range d.node.streams {
		if s.main() && s.gpu == d.id && s.declaration.Opened != 0 && (s.group.tenant == t || t.Job == Shared) {
			begin = min(begin, s.declaration.Opened)
		}
	}
	for _, a := range d.told {
		if len(a.Holders) > 0 && a.T != 0 && a.By != recording.AllocatedByProcesses {
			begin = min(begin, a.T)
		}
	}
	return min(max(begin, d.booked, d.node.options.Begin), d.node.now)
}

// begin opens an episode.
func (d *device) begin(t Tenant, at uint64) {
	of := d.node.tenancy(d, t)
	of.open++
	of.untold++
	of.resume(d, at)
	for _, other := range d.node.tenancies { // somebody else has it now: nobody has had it all along
		if other.GPU == d.id {
			other.resumes = 0
		}
	}
	e := &episode{of: of, gpu: d, begin: at, book: ledger.NewBook(int64(at), d.node.options.IdleAfter), streams: map[*stream]recording.StreamID{}}
	e.book.Impatient(impatience)
	e.book.Bounded(mostPending)
	e.agent, _ = e.book.Declare(recording.Declaration{Producer: recording.ProducerAgent}) // a Book refuses nothing
	e.device(d.note)
	d.episodes = append(d.episodes, e)
	for _, s := range d.node.streams { // a process in a long step says nothing for a while, and is there all the same
		if s.main() && s.gpu == d.id && s.trainedBefore(at) {
			e.records(s, nil)
		}
	}
}

func (n *Node) tenancy(d *device, t Tenant) *tenancy {
	key := tenancyKey{d.id, t}
	of := n.tenancies[key]
	if of == nil {
		of = &tenancy{Tenancy: Tenancy{GPU: d.id, Tenant: t, Since: n.now}}
		n.tenancies[key] = of
	}
	return of
}

// resume books the time in which no agent ran and the tenant had the GPU all along: nobody knows what it did.
func (t *tenancy) resume(d *device, at uint64) {
	if t.resumes == 0 || at > d.node.options.Begin+resumeWithin {
		return
	}
	from := t.resumes
	t.resumes = 0
	if opened := d.node.opened(d, t.Tenant); opened != math.MaxUint64 {
		from = max(from, opened)
	}
	if at > from {
		t.Books.NS[ledger.Unattributed] += int64(at - from)
		t.Books.Allocated += int64(at - from)
	}
}

// opened is when the first of a tenant's processes on a GPU opened its ring; the latest of all times where it has none.
func (n *Node) opened(d *device, t Tenant) (first uint64) {
	first = math.MaxUint64
	for _, s := range n.streams {
		if s.main() && s.gpu == d.id && s.group.tenant == t {
			first = min(first, s.declaration.Opened)
		}
	}
	return first
}

// over ends an episode; it is closed when all that belongs to it has been told.
func (e *episode) over(at uint64) {
	e.end = max(at, e.settledTo(), 1)
	e.gpu.booked = e.end
	e.of.open--
	e.of.ended = e.end
}

// device tells the book which GPU it is about.
func (e *episode) device(note recording.GPUNote) {
	note.GPU, note.UUID = 0, e.gpu.id
	_ = e.book.Note(e.agent, recording.EncodeNote(note)) // a Book refuses nothing
}

// records tells the book what a process did, all of whose work is on this GPU.
func (e *episode) records(s *stream, records []recording.Record) {
	id, ok := e.streams[s]
	if !ok {
		d := s.declaration
		d.GPUUUID = &e.gpu.id
		id, _ = e.book.Declare(d)
		e.streams[s] = id
		if s.training.unseen > mostUnclocked {
			e.book.Unclocked(id)
		}
		if s.trainedBefore(e.begin) { // else what comes before its next record would look like a start
			_ = e.book.Records(id, []recording.Record{recording.Step{Begin: recording.Unknown64, End: e.begin}.Encode()})
		}
	}
	_ = e.book.Records(id, records)
}

// trains reports whether a process that trains is in it.
func (e *episode) trains() bool { return len(e.streams) > 0 }

// window books one window of counters, and counts what it showed while the tenant had the GPU.
func (e *episode) window(v *recording.GPU) {
	begin, end := max(v.Begin, e.begin), v.End
	if e.end != 0 {
		end = min(end, e.end)
	}
	if begin >= end {
		return
	}
	w := *v
	w.Ref, w.Flags = 0, e.gpu.holds(e, v.Flags)
	_ = e.book.Records(e.agent, []recording.Record{w.Encode()})
	e.of.Activity.add(w, float64(end-begin)/1e9)
}

// add counts one window, of which so many seconds were the tenant's.
func (a *Activity) add(v recording.GPU, seconds float64) {
	w := ledger.WindowOf(v) // in which a counter that no device can show makes all of it untrusted
	if w.Untrusted {
		a.Untrusted += seconds
		return
	}
	sum := func(ratio float32, active, seen *float64) {
		if ratio >= 0 { // not NaN
			*active += min(float64(ratio), 1) * seconds
			*seen += seconds
		}
	}
	sum(v.SM, &a.SMActive, &a.SMSeen)
	sum(v.Resident, &a.Resident, &a.ResidentSeen)
	sum(v.Tensor, &a.TensorActive, &a.TensorSeen)
	if w.HeldKnown {
		a.HeldSeen += seconds
		if w.Held {
			a.Held += seconds
		}
	}
}

// settle books up to t and reports whether the episode is closed.
func (e *episode) settle(t int64) (closed bool) {
	if e.end == 0 || t < int64(e.end) {
		e.book.CloseUpTo(t)
		e.unfed()
		return false
	}
	e.book.Close(int64(e.end))
	e.unfed()
	e.of.Books = e.of.Books.Add(e.totals())
	e.of.untold--
	e.of.ended = e.gpu.node.now // what it came to is to be seen for as long as anything else
	return true
}

// manySteps without a fetch show that batches come from a loader that the hook does not see.
const manySteps = 100

// unfed counts what was booked as the host's since the last time and may be waits.
func (e *episode) unfed() {
	host := e.balance().NS[ledger.Host]
	for s := range e.streams {
		if s.training.stepped >= manySteps && s.training.began != 0 && s.training.fetches == 0 {
			e.unseen += host - e.host
			break
		}
	}
	e.host = host
}

// balance is what the episode's book has settled.
func (e *episode) balance() (t ledger.Totals) {
	for _, b := range e.book.Balances() {
		t = t.Add(b.Totals)
	}
	return t
}

// totals is what the episode comes to.
func (e *episode) totals() ledger.Totals {
	t := e.balance()
	t.NS[ledger.Host] -= e.unseen
	t.NS[ledger.Unattributed] += e.unseen
	return t
}

// settledTo is the time up to which it is booked.
func (e *episode) settledTo() uint64 {
	for _, b := range e.book.Balances() {
		return uint64(max(b.Settled, int64(e.begin)))
	}
	return e.begin
}

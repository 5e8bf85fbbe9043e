package live

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Options of a Node. The zero value is the default, but for Begin.
type Options struct {
	Begin     uint64 // ns, CLOCK_MONOTONIC: nothing before it is booked
	Lag       uint64 // ns by which the slowest source tells late: nothing younger is settled; 0 = 15 s
	Forget    uint64 // ns for which a row stays after its end; 0 = 10 min
	IdleAfter int64  // ns, as in ledger.NewPage
	Namespace uint64 // of the agent's pids, by its inode: those of a driver's list are meant in it; 0 = not known
}

// Node is the live book of one machine. It is for one goroutine; what [Node.Snapshot] returns is for any.
type Node struct {
	options   Options
	now       uint64 // of the last Tick
	streams   map[recording.StreamID]*stream
	last      recording.StreamID
	devices   map[string]*device
	ranks     map[rankKey]*rank
	groups    map[groupKey]*group
	tenancies map[tenancyKey]*tenancy
	jobs      map[Tenant]*job
	called    map[holderName]Tenant // what the processes of a holder called their job
	machine   Machine
	over      map[processKey]gone    // processes that have ended
	carried   map[processKey]carried // streams that an earlier agent counted in part
	living    map[Tenant]int         // groups that run, by name
	free      map[Tenant]int         // the lowest number that may be free for one more of a name; absent = 1
	early     int                    // records that are kept until it is known on which GPU their process trains
}

// New returns the book of a machine of which nothing is known yet.
func New(o Options) *Node {
	o.Lag = cmp.Or(o.Lag, 15e9)
	o.Forget = cmp.Or(o.Forget, 600e9)
	return &Node{options: o, now: o.Begin, streams: map[recording.StreamID]*stream{}, devices: map[string]*device{}, ranks: map[rankKey]*rank{},
		groups: map[groupKey]*group{}, tenancies: map[tenancyKey]*tenancy{}, jobs: map[Tenant]*job{}, called: map[holderName]Tenant{},
		over: map[processKey]gone{}, carried: map[processKey]carried{}, living: map[Tenant]int{}, free: map[Tenant]int{}}
}

// Identity is what is known of whoever writes into a spool folder before a ring is read.
type Identity struct {
	Folder    string // tells folders apart
	Job       string // a name for what its processes do not name themselves, "" = none
	Namespace string // of the pod it is mounted in, "" = none
	Pod       string
}

// Spool returns the sink for the rings of one folder. Whoever writes one speaks of itself: what it says as an agent is not heard.
func (n *Node) Spool(id Identity) recording.Sink { return &spool{n, id, false} }

// Agent returns the sink for what the agent of the machine tells: GPUs, who has them, the machine itself.
func (n *Node) Agent() recording.Sink { return &spool{n, Identity{}, true} }

// spool is a Node as seen by one writer.
type spool struct {
	*Node
	identity Identity
	agent    bool // it may speak of the machine and its GPUs
}

// Declare introduces a stream.
func (s *spool) Declare(d recording.Declaration) (recording.StreamID, error) {
	s.last++
	s.streams[s.last] = s.open(s, d)
	return s.last, nil
}

// Records takes records of a declared stream.
func (n *Node) Records(id recording.StreamID, records []recording.Record) error {
	if s := n.streams[id]; s != nil {
		s.take(records)
	}
	return nil
}

// Note takes a note of a declared stream.
func (n *Node) Note(id recording.StreamID, raw json.RawMessage) error {
	if s := n.streams[id]; s != nil {
		s.note(raw)
	}
	return nil
}

// End forgets a stream: its process has ended and all of it was told. How far it was counted is kept for a while: its ring may still lie
// there when another agent begins.
func (n *Node) End(id recording.StreamID) {
	if s := n.streams[id]; s != nil {
		if s.rank != nil && len(n.over) < mostOver {
			n.over[s.key()] = gone{s.carry(), n.now}
		}
		s.end()
		delete(n.streams, id)
	}
}

// gone is a process that has ended, and when that was known.
type gone struct {
	carried
	at uint64 // ns
}

// mostOver bounds how many are kept.
const mostOver = 1 << 13

// See takes what the header of a ring says of its hook, which no record tells.
func (n *Node) See(id recording.StreamID, h recording.RingHeader) {
	s := n.streams[id]
	if s == nil || s.rank == nil {
		return
	}
	hook := &s.rank.Hook
	grown := func(counter, most *uint64, now uint64) { // a header that goes back and forth is counted once
		if now < recording.Latest {
			more(counter, now-min(*most, now))
			*most = max(*most, now)
		}
	}
	grown(&hook.Looks, &s.header.OwnLooks, h.OwnLooks)
	grown(&hook.OwnTime, &s.header.OwnTime, h.OwnTime)
	grown(&hook.Errors, &s.header.HookErrors, h.HookErrors)
	s.header.Hook = h.Hook
}

// Limits takes a sample of what the control group of a job may use.
func (n *Node) Limits(t Tenant, l recording.Limits) {
	j := n.job(t)
	j.UsableCores = unit.Maybe[float64]{}
	if !math.IsNaN(float64(l.Usable)) {
		j.UsableCores = unit.Some(float64(l.Usable))
	}
	if l.ThrottledTime != recording.Unknown64 {
		j.ThrottledTime = unit.Some(j.ThrottledTime.Or(0) + l.ThrottledTime)
	}
}

// Tick settles what can be settled at the time now (ns, CLOCK_MONOTONIC), and forgets what has ended long ago.
func (n *Node) Tick(now uint64) {
	n.now = max(n.now, now)
	for _, s := range n.streams {
		s.handOff(n.now)
	}
	n.assign()
	for _, d := range n.devices {
		d.settle()
	}
	n.forget()
}

// forget drops rows that ended long ago.
func (n *Node) forget() {
	over := func(running bool, ended uint64) bool { return !running && n.now-min(ended, n.now) > n.options.Forget }
	maps.DeleteFunc(n.tenancies, func(_ tenancyKey, t *tenancy) bool { return over(t.untold > 0, t.ended) })
	maps.DeleteFunc(n.ranks, func(_ rankKey, r *rank) bool { return over(r.processes > 0, r.ended) })
	maps.DeleteFunc(n.groups, func(_ groupKey, g *group) bool { return over(g.processes > 0, g.ended) })
	called := map[Tenant]bool{}
	for _, g := range n.groups {
		called[g.called] = true
	}
	maps.DeleteFunc(n.free, func(t Tenant, _ int) bool { return !called[t] })
	living := map[Tenant]bool{}
	for k := range n.ranks {
		living[k.tenant] = true
	}
	for k := range n.tenancies {
		living[k.tenant] = true
	}
	maps.DeleteFunc(n.jobs, func(t Tenant, _ *job) bool { return !living[t] })
	maps.DeleteFunc(n.called, func(_ holderName, t Tenant) bool { return !living[t] })
	maps.DeleteFunc(n.devices, func(_ string, d *device) bool {
		return len(d.episodes) == 0 && over(false, max(d.seen, d.since)) && !n.trainedOn(d)
	})
	maps.DeleteFunc(n.over, func(_ processKey, o gone) bool { return n.now-min(o.at, n.now) > n.options.Forget })
	maps.DeleteFunc(n.carried, func(processKey, carried) bool { return n.now-n.options.Begin > resumeWithin })
}

// more adds to a counter. A ring may say what it likes, of times above all: however much that comes to, no counter goes back.
func more(counter *uint64, by uint64) { *counter += min(by, most-min(*counter, most)) }

// most is what no counter passes: 146 years of ns.
const most = 1 << 62

// job returns the row of a job, made when first asked for.
func (n *Node) job(t Tenant) *job {
	j := n.jobs[t]
	if j == nil {
		j = &job{Job: Job{Tenant: t, Since: n.now}}
		n.jobs[t] = j
	}
	return j
}

type job struct {
	Job
	carried bool
}

// sorted returns the values of a map in the order of compare.
func sorted[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(m), compare)
}

// TenantOf returns whose a stream is, of a training process or of a worker whose training process is known.
func (n *Node) TenantOf(id recording.StreamID) (t Tenant, ok bool) {
	s := n.streams[id]
	if s == nil || s.rank == nil {
		return t, false
	}
	return s.rank.Tenant, true
}

// Has reports whether a tenant has a GPU now, or had it so recently that its counters are still to come.
func (n *Node) Has(t Tenant, uuid string) bool {
	d := n.devices[uuid]
	if d == nil {
		return false
	}
	if slices.Contains(d.trainers(), t) {
		return true
	}
	for _, e := range d.episodes {
		if e.of.Tenant == t || e.of.Tenant.Job == Shared && n.holds(d, t) {
			return true
		}
	}
	return false
}

func (n *Node) holds(d *device, t Tenant) bool {
	holders, _ := d.holders()
	return slices.Contains(holders, t)
}

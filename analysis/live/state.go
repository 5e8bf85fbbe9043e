package live

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
)

// StateSchema names the form of a State.
const StateSchema = "datawait.state/1"

// State is what outlives an agent: its counters, and how far every running process has been counted. Whoever shows counters must keep
// the State they come from first. A counter that falls back looks to Prometheus as if it had begun anew, and all of it is counted
// twice; one that begins at 0 does no harm.
type State struct {
	Schema    string         `json:"schema"`
	BootID    string         `json:"boot_id"`
	At        uint64         `json:"at"` // ns, CLOCK_MONOTONIC
	Tenancies []tenancyState `json:"tenancies"`
	Ranks     []rankState    `json:"ranks"`
	Jobs      []Job          `json:"jobs"`
	Processes []carried      `json:"processes"`
}

type tenancyState struct {
	GPU      string           `json:"gpu"`
	Tenant   Tenant           `json:"tenant"`
	Accounts map[string]int64 `json:"accounts_ns"`
	Covered  int64            `json:"covered_ns"`
	AtMost   int64            `json:"wait_upper_bound_ns"`
	Activity Activity         `json:"activity"`
	Pending  int64            `json:"pending_ns"`        // it had the GPU, and what it did was not all told yet
	Resumes  uint64           `json:"resumes,omitempty"` // ns: it had the GPU then, and nothing later was booked; 0 = it has it no more
	Ended    uint64           `json:"ended,omitempty"`   // ns
}

type rankState struct {
	Rank
	Ended uint64 `json:"ended,omitempty"` // ns
}

// carried is how far a running process has been counted.
type carried struct {
	processKey
	Tenant     Tenant `json:"tenant"` // of a training process
	Seq        uint32 `json:"seq"`
	OwnTime    uint64 `json:"own_time"`
	OwnLooks   uint64 `json:"own_looks"`
	HookErrors uint64 `json:"hook_errors"`
}

// processKey names a process for good. One that becomes another program opens another ring.
type processKey struct {
	Folder     string `json:"folder"` // whoever writes into another one may say that it is the same process
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	Namespace  uint64 `json:"pid_namespace"`
	Opened     uint64 `json:"opened"`
}

// carry is how far a process has been counted.
func (s *stream) carry() carried {
	return carried{s.key(), s.rank.Tenant, s.counted, s.header.OwnTime, s.header.OwnLooks, s.header.HookErrors}
}

func (s *stream) key() processKey {
	d := s.declaration
	return processKey{s.identity.Folder, d.PID, d.StartTicks, d.Namespace, d.Opened}
}

// resumeWithin is how soon after its begin an agent must find again what another left, ns.
const resumeWithin = 120e9

// State returns what another agent needs to go on from here.
func (n *Node) State(bootID string) *State {
	s := &State{Schema: StateSchema, BootID: bootID, At: n.now}
	for _, t := range sorted(n.tenancies, func(a, b *tenancy) int { return cmp.Or(cmp.Compare(a.GPU, b.GPU), a.Tenant.compare(b.Tenant)) }) {
		s.Tenancies = append(s.Tenancies, n.keep(t))
	}
	for _, r := range sorted(n.ranks, (*rank).compare) {
		row := rankState{r.Rank, r.ended}
		row.GPU, row.Workers.Running = n.gpuOf(r), 0
		s.Ranks = append(s.Ranks, row)
	}
	for _, j := range sorted(n.jobs, func(a, b *job) int { return a.Tenant.compare(b.Tenant) }) {
		row := j.Job
		row.StepTimes = row.StepTimes.clone()
		s.Jobs = append(s.Jobs, row)
	}
	for _, o := range n.streams {
		if o.rank == nil {
			continue
		}
		s.Processes = append(s.Processes, o.carry())
	}
	for _, o := range n.over {
		s.Processes = append(s.Processes, o.carried)
	}
	for _, c := range n.carried { // their rings were not opened yet: an agent that ends again before must not forget them
		s.Processes = append(s.Processes, c)
	}
	slices.SortFunc(s.Processes, func(a, b carried) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Opened, b.Opened)) })
	return s
}

func (n *Node) keep(t *tenancy) tenancyState {
	books := n.books(t)
	row := tenancyState{GPU: t.GPU, Tenant: t.Tenant, Accounts: map[string]int64{}, Covered: books.Covered, AtMost: books.WaitUpperBound,
		Activity: t.Activity, Resumes: t.resumes, Ended: t.ended}
	if t.open > 0 {
		row.Resumes = n.now
	}
	for _, a := range ledger.Accounts() {
		row.Accounts[a.String()] = books.NS[a]
	}
	if d := n.devices[t.GPU]; d != nil {
		for _, e := range d.episodes {
			if e.of == t {
				end := cmp.Or(e.end, n.now)
				row.Pending += int64(end - min(e.settledTo(), end))
			}
		}
	}
	return row
}

// Restore lets a fresh Node go on from where another ended. A State of another boot, or of a time to come, is refused: its processes are
// gone, and counters that begin at 0 are counters all the same.
func (n *Node) Restore(s *State, bootID string) error {
	switch {
	case s.Schema != StateSchema:
		return fmt.Errorf("it has schema %q, not %q", s.Schema, StateSchema)
	case s.BootID != bootID || bootID == "":
		return fmt.Errorf("the machine was started since")
	case s.At > n.options.Begin:
		return fmt.Errorf("it is of a time to come")
	}
	if err := s.check(); err != nil {
		return err
	}
	for _, row := range s.Tenancies {
		t := n.tenancy(n.device(row.GPU), row.Tenant)
		t.Books, t.Activity, t.carried = row.totals(), row.Activity, true
		if t.ended, t.resumes = cmp.Or(row.Ended, s.At), row.Resumes; t.resumes != 0 {
			t.ended = s.At
		}
	}
	for _, row := range s.Ranks {
		r := &rank{Rank: row.Rank, ended: cmp.Or(row.Ended, s.At), carried: true}
		n.ranks[rankKey{row.Tenant, row.Rank.Rank.Or(-1)}] = r
	}
	for _, row := range s.Jobs {
		n.jobs[row.Tenant] = &job{Job: row, carried: true}
	}
	for _, c := range s.Processes {
		n.carried[c.processKey] = c
	}
	return nil
}

// check refuses a State that no agent wrote: counters that begin at 0 are better than those of a damaged file.
func (s *State) check() error {
	for _, row := range s.Tenancies {
		all := max(row.Pending, 0)
		for _, ns := range row.Accounts {
			if ns < 0 || uint64(ns) > s.At {
				return fmt.Errorf("it says that GPU %s was counted for longer than the machine runs", recording.Name(row.GPU))
			}
			all += ns
		}
		if row.GPU == "" || row.Pending < 0 || uint64(all) > s.At || !row.Activity.plausible() {
			return fmt.Errorf("it says of GPU %s what cannot be", recording.Name(row.GPU))
		}
	}
	for _, row := range s.Ranks {
		if row.largest() > most || row.Rank.Rank.Or(0) < 0 {
			return fmt.Errorf("it says of a rank of %s what cannot be", recording.Name(row.Tenant.Job))
		}
	}
	for _, row := range s.Jobs {
		if !row.StepTimes.plausible() || row.ThrottledTime.Or(0) > most || !(row.UsableCores.Or(0) >= 0) {
			return fmt.Errorf("it says of %s what cannot be", recording.Name(row.Tenant.Job))
		}
	}
	return nil
}

// plausible reports whether every sum is one of seconds.
func (a Activity) plausible() bool {
	for _, s := range []float64{a.Untrusted, a.Resident, a.ResidentSeen, a.SMActive, a.SMSeen, a.TensorActive, a.TensorSeen, a.Held, a.HeldSeen} {
		if !(s >= 0 && s <= most/1e9) {
			return false
		}
	}
	return true
}

// largest is the largest of its counters.
func (r *Rank) largest() uint64 {
	w, h := &r.Workers, &r.Hook
	return slices.Max([]uint64{r.Steps, r.Fetches, r.Epochs, r.Training, r.Wait, r.WaitClocked, r.Exposed, r.HandOff, r.HandOffSeen, r.EpochStart, r.Validation,
		r.Checkpoint, w.Batches, w.Build, w.CPU, w.CPUSeen, w.RunQueue, w.QueueSeen, w.OffCPU, w.Files, w.Requests, w.IOSeen, w.ReadBytes, w.ReadSeen,
		h.Records, h.Lost, h.Errors, h.OwnTime, h.Looks})
}

// totals is the balance that the accounts make up: it sums to the allocated time, whatever the file says.
func (row tenancyState) totals() (t ledger.Totals) {
	for _, a := range ledger.Accounts() {
		t.NS[a] = max(row.Accounts[a.String()], 0)
		t.Allocated += t.NS[a]
	}
	pending := max(row.Pending, 0)
	t.NS[ledger.Unattributed] += pending
	t.Allocated += pending
	t.Covered = min(max(row.Covered, 0), t.Allocated)
	t.WaitUpperBound = min(max(row.AtMost, 0), t.NS[ledger.Unattributed])
	return t
}

// resumed returns the group of a process that an earlier agent knew.
func (n *Node) resumed(t Tenant, id Identity, d recording.Declaration) *group {
	key := groupOf(id, d)
	if g := n.groups[key]; g != nil {
		return g
	}
	if n.living[t] > 0 { // a job that began while no agent ran has the name by now
		return n.group(id, d)
	}
	g := &group{tenant: t, called: t}
	n.groups[key] = g
	return g
}

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/recording"
)

// Known is a process that is known to belong to the job: the command datawait started, and every process whose spool was
// seen. Its descendants belong to the job too. A spool written in another pid namespace names pids that mean others here;
// StartTicks keeps those out.
type Known struct {
	PID        int    // in the agent's pid namespace
	StartTicks uint64 // field 22 of /proc/PID/stat; Unknown64 or 0 = not known
	Role       recording.ProcessRole
}

// Member names a process of the job for good.
type Member struct {
	PID        int
	StartTicks uint64 // field 22 of /proc/PID/stat
}

// Members lists the processes of the job, ascending. With an error they are those that were known before.
func (h *Host) Members() ([]Member, error) {
	err := h.tree.scan()
	all := make([]Member, len(h.tree.order))
	for i, pid := range h.tree.order {
		all[i] = Member{pid, h.tree.members[pid].start}
	}
	return all, err
}

// member is a process of the job. Once a member it stays one until it ends, whoever becomes its parent: a process whose
// parent ended is handed to init or to a subreaper (PR_SET_CHILD_SUBREAPER), and belongs to the job all the same.
type member struct {
	pid     int
	start   uint64 // with pid, its identity: pids are used again
	parent  int    // when first seen
	role    recording.ProcessRole
	at      uint64      // ns, when stat was read
	stat    processStat // comm cleared
	loading bool        // comm says it is a loader's worker

	statFile, statusFile, ioFile held
}

// workerComm is the name PyTorch gives a loader's worker since 2.6 (torch/utils/data/_utils/worker.py, _worker_loop calls
// torch.multiprocessing._set_thread_name). Field 2 of /proc/PID/stat shows it.
const workerComm = "pt_data_worker"

// stranger is a process outside the job, kept so that its stat is read once and not at every scan.
type stranger struct {
	parent, group int
	start         uint64
}

// strangersKept is how many scans strangers are trusted. A pid may be used again between two scans; after this many,
// whoever has it is looked at afresh.
const strangersKept = 30

// tree finds the processes of the job. A scan lists /proc and reads the stat of members and of pids not seen before: the
// stat of every process of a large node at every tick would be the dearest thing the agent does.
type tree struct {
	files *files
	now   func() uint64
	job   func() []Known
	self  int // the agent, never a member: the walk stops there

	members   map[int]*member
	strangers map[int]stranger
	leaders   map[int]uint64 // process groups led by a known process, and its start: catches children whose parent ended unseen
	order     []int          // pids of members, ascending
	joined    int            // members that came with the last scan
	known     []Known        // of the last scan
	scans     int
	scanned   uint64 // ns, begin of the last scan
	pids      []int  // of all processes, ascending
}

func newTree(f *files, o Options) *tree {
	return &tree{files: f, now: o.Now, job: o.Job, self: o.Self,
		members: map[int]*member{}, strangers: map[int]stranger{}, leaders: map[int]uint64{}}
}

// sameScan is how old a scan may be, in nanoseconds, for probes that run one after the other to share it.
const sameScan = 50e6

// scan brings members up to date. It fails only where /proc cannot be listed.
func (t *tree) scan() error {
	at := t.now()
	if t.scans > 0 && at-t.scanned < sameScan {
		return nil
	}
	var err error
	if t.pids, err = t.files.numbers(t.files.Proc, t.pids[:0]); err != nil {
		return err
	}
	slices.Sort(t.pids) // as the kernel lists them
	if t.scans%strangersKept == 0 {
		clear(t.strangers)
	}
	t.scans++
	t.scanned, t.joined = at, 0
	t.renew()
	t.admitKnown()
	t.meet()
	t.adopt()
	t.settle()
	return nil
}

// present reports whether a process was there at the last scan.
func (t *tree) present(pid int) bool {
	_, found := slices.BinarySearch(t.pids, pid)
	return found
}

// renew reads the stat of members and drops those that ended or whose pid is somebody else's now.
func (t *tree) renew() {
	for pid, m := range t.members {
		if !t.present(pid) || !t.read(m) {
			t.files.release(&m.statFile, &m.statusFile, &m.ioFile)
			delete(t.members, pid)
		}
	}
}

// read refreshes a member; false if it is gone.
func (t *tree) read(m *member) bool {
	at := t.now()
	b, err := t.files.readHeld(&m.statFile, t.files.ofProcess(m.pid, "stat"))
	if err != nil {
		return false
	}
	s, err := parseProcessStat(b)
	if err != nil || s.start != m.start {
		return false
	}
	m.loading = string(s.comm) == workerComm
	s.comm = nil
	m.at, m.stat = at, s
	return true
}

func (t *tree) stat(pid int) (processStat, error) {
	b, err := t.files.read(t.files.ofProcess(pid, "stat"))
	if err != nil {
		return processStat{}, err
	}
	return parseProcessStat(b)
}

// admitKnown makes members of the processes the caller knows, and gives members the role the caller knows.
//
// The list may hold thousands that ended, the workers of all epochs, so only pids that are there are looked at.
func (t *tree) admitKnown() {
	t.known = nil
	if t.job != nil {
		t.known = t.job()
	}
	for _, k := range t.known {
		m := t.members[k.PID]
		if m == nil && t.present(k.PID) {
			m = t.admit(k.PID, k.StartTicks, k.Role)
		}
		if m == nil || !k.names(m) {
			continue
		}
		m.role = k.Role
		if m.stat.group == m.pid {
			t.leaders[m.pid] = m.start
		}
	}
}

// names reports whether k means this process, and not an earlier one of the same pid.
func (k Known) names(m *member) bool {
	return k.PID == m.pid && (k.StartTicks == m.start || k.StartTicks == 0 || k.StartTicks == unknown)
}

// admit reads a process and makes it a member if it started at start (0 or unknown: whenever); nil if it is not there.
func (t *tree) admit(pid int, start uint64, role recording.ProcessRole) *member {
	at := t.now()
	s, err := t.stat(pid)
	m := &member{pid: pid, start: s.start, parent: s.ppid, role: role, at: at}
	if err != nil || pid == t.self || !(Known{PID: pid, StartTicks: start}).names(m) {
		return nil
	}
	m.loading = string(s.comm) == workerComm
	s.comm = nil
	m.stat = s
	t.members[pid] = m
	t.joined++
	delete(t.strangers, pid)
	return m
}

// meet reads the stat of pids that are neither members nor strangers.
func (t *tree) meet() {
	for _, pid := range t.pids {
		if _, met := t.strangers[pid]; met || t.members[pid] != nil {
			continue
		}
		if s, err := t.stat(pid); err == nil {
			t.strangers[pid] = stranger{parent: s.ppid, group: s.group, start: s.start}
		}
	}
}

// adopt makes members of strangers whose parent is one, until none is left. Strangers are kept with the parent they had
// when met, so a job that becomes known late still finds children that were handed to a subreaper since.
func (t *tree) adopt() {
	for {
		var found []int
		for pid, s := range t.strangers {
			if pid != t.self && t.descends(s) {
				found = append(found, pid)
			}
		}
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			s := t.strangers[pid]
			delete(t.strangers, pid)
			if m := t.admit(pid, s.start, recording.RoleChild); m != nil {
				m.parent = s.parent
			}
		}
	}
}

// descends reports whether a member is the parent, or leads the process group. Whoever started before it is a former owner
// of a pid that was used again.
func (t *tree) descends(s stranger) bool {
	if m := t.members[s.parent]; m != nil && m.start <= s.start {
		return true
	}
	start, led := t.leaders[s.group]
	return led && start <= s.start
}

// settle orders the members, gives roles by name where the caller knew none, and forgets processes that are gone.
func (t *tree) settle() {
	for pid := range t.strangers {
		if !t.present(pid) {
			delete(t.strangers, pid)
		}
	}
	t.order = t.order[:0]
	for pid, m := range t.members {
		t.order = append(t.order, pid)
		if m.role == 0 || m.role == recording.RoleChild && m.loading {
			m.role = recording.RoleChild
			if m.loading {
				m.role = recording.RoleWorker
			}
		}
	}
	slices.Sort(t.order)
	for pid, start := range t.leaders {
		if m := t.members[pid]; (m == nil || m.start != start) && !t.groupLives(pid) {
			delete(t.leaders, pid)
		}
	}
}

func (t *tree) groupLives(group int) bool {
	for _, m := range t.members {
		if m.stat.group == group {
			return true
		}
	}
	return false
}

// gone reports whether an error means that the process ended between listing and reading it.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// unreadable turns a refusal to show a process's file into a reason a reader can act on.
func unreadable(what string, err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("%s of the job's processes is hidden from this user: run datawait as the job's user", what)
	}
	return err.Error()
}

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/datawait/datawait/probe/recording"
)

// groupTicks is how many samples the place of the job's control group is trusted: a process may be moved.
const groupTicks = 10

// limitsProbe keeps what the job's control group was and had counted.
type limitsProbe struct {
	groups *groups // nil while the job has no process
	start  uint64  // of the process whose they are
	ticks  int
	shared uint64 // start of the process whose /dev/shm the note tells of

	at        uint64 // ns; 0 before the first sample
	throttled map[string]throttling
}

// sampleLimits writes one LIMITS record, once a process of the job is there.
func (h *Host) sampleLimits() error {
	if err := h.tree.scan(); err != nil {
		return err
	}
	head := h.tree.head()
	if head == nil {
		return nil
	}
	if err := h.findGroups(head); err != nil {
		return err
	}
	h.sharedMemory(head)
	at := h.now()
	r := recording.Limits{Begin: h.limits.at, End: at, MemoryLimit: h.memoryLimit(), Throttled: nan, ThrottledTime: unknown}
	b := h.bounds()
	r.Quota, r.CPUSet, r.Usable = b.quotaCores(), b.cpusetCores(), b.usable()
	h.because("usable", b.explain())
	seen := h.limits.at != 0
	h.account(&r)
	h.limits.at = at
	if !seen {
		return nil
	}
	return h.out.Append(r.Encode())
}

// findGroups finds the control groups of the job's head where they are not known or may be old.
func (h *Host) findGroups(head *member) error {
	l := &h.limits
	l.ticks++
	if l.groups != nil && l.start == head.start && l.ticks%groupTicks != 0 {
		return nil
	}
	g, err := groupsOf(h.files, head.pid)
	if errors.Is(err, fs.ErrNotExist) { // a kernel without control groups, or the process just ended
		g, err = &groups{files: h.files}, nil
	}
	if err != nil {
		return fmt.Errorf("finding the job's control group: %w", err)
	}
	if l.groups == nil || l.start != head.start {
		l.throttled = nil
	}
	l.groups, l.start = g, head.start
	return nil
}

// bounds reads everything that bounds the job's CPU time.
func (h *Host) bounds() bounds {
	b := bounds{online: h.onlineSet(), quota: h.quota()}
	c, err := h.limits.groups.chainOf("cpuset")
	if err == nil {
		b.cpuset, err = h.files.cpus(c)
	}
	h.because("cpuset", reason(err))
	for _, m := range h.tree.loaders() {
		if set, ok := h.affinity(m); ok {
			b.affinity = append(b.affinity, set)
		}
	}
	return b
}

// affinity reads on which CPUs a process may run. A process may change its own at any time (an OpenMP runtime that binds
// its threads does), so it is read at every sample.
func (h *Host) affinity(m *member) (cpuSet, bool) {
	b, err := h.files.readHeld(&m.statusFile, h.files.ofProcess(m.pid, "status"))
	if err != nil {
		return nil, false
	}
	s := parseProcessStatus(b)
	return s.allowed, s.allowedRead
}

// quota returns the job's CPU quota in cores: +Inf for none, NaN for not known.
func (h *Host) quota() float64 {
	c, err := h.limits.groups.chainOf("cpu")
	if err != nil {
		h.because("quota", err.Error())
		return math.NaN()
	}
	describe(h, &h.note.Cgroup, c.describe())
	q, err := h.files.cpuQuota(c)
	if err != nil {
		h.because("quota", err.Error())
		return math.NaN()
	}
	h.because("quota", h.hidden(c))
	return q
}

// hidden says whether groups above those that are seen may have limits of their own.
func (h *Host) hidden(c chain) string {
	if c.outermostOfMachine() {
		return ""
	}
	return "limits of the control groups around this container cannot be seen from inside it"
}

func (h *Host) memoryLimit() uint64 {
	c, err := h.limits.groups.chainOf("memory")
	limit := uint64(unknown)
	if err == nil {
		limit, err = h.files.memoryLimit(c)
	}
	h.because("memory limit", reason(err))
	return limit
}

// account fills in how much the quota held the job up since the last sample: the worst of the groups that have a quota, for
// each counts by itself. A window in which no period passed says nothing.
func (h *Host) account(r *recording.Limits) {
	c, err := h.limits.groups.chainOf("cpu")
	if err != nil {
		return
	}
	cur := h.files.throttledAt(c)
	for folder, t := range cur {
		before, ok := h.limits.throttled[folder]
		if !ok {
			continue
		}
		s := share(growth(t.throttled, before.throttled), growth(t.periods, before.periods))
		if s == s && !(s <= r.Throttled) {
			r.Throttled = s
		}
		if d := growth(t.nanos, before.nanos); d != unknown && (r.ThrottledTime == unknown || d > r.ThrottledTime) {
			r.ThrottledTime = d
		}
	}
	h.limits.throttled = cur
}

// reason returns an error's text, "" for none.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

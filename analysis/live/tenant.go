package live

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

func (t Tenant) compare(o Tenant) int {
	return cmp.Or(cmp.Compare(t.Namespace, o.Namespace), cmp.Compare(t.Job, o.Job), cmp.Compare(t.Pod, o.Pod))
}

// group is the processes that one launcher started on this machine: the ranks of one job. One that starts them again goes on as the
// same job.
type group struct {
	tenant    Tenant
	called    Tenant // without its number
	number    int    // of several of that name; 0 = an earlier agent gave it
	processes int
	ended     uint64 // ns, when the last of them did
}

// groupKey tells groups apart. Ranks have their launcher in common; a process that is no rank is a group of its own.
type groupKey struct {
	folder    string
	job       string
	namespace uint64 // of pids
	pid       int
}

// rankKey names a row of Ranks: a rank, over all its restarts.
type rankKey struct {
	tenant Tenant
	rank   int // -1 = none
}

// rank is a row on its way.
type rank struct {
	Rank
	processes int
	ended     uint64 // ns
	carried   bool
}

// group returns the group of a training process. Two groups that live at once have two names: the second "train.py" is
// "train.py (2)". A job that comes after another has ended takes its name over, and its row goes on.
func (n *Node) group(id Identity, d recording.Declaration) *group {
	key := groupOf(id, d)
	if g := n.groups[key]; g != nil && (g.processes > 0 || n.living[g.tenant] == 0) {
		return g
	}
	g := &group{called: Tenant{Job: key.job, Namespace: id.Namespace, Pod: id.Pod}}
	g.tenant = g.called
	for g.number = max(n.free[g.called], 1); ; g.number++ {
		if g.number > 1 {
			g.tenant.Job = fmt.Sprintf("%s (%d)", key.job, g.number)
		}
		if n.living[g.tenant] == 0 {
			break
		}
	}
	n.groups[key] = g
	return g
}

// joined counts one more process of a group.
func (n *Node) joined(g *group) {
	if g.processes++; g.processes == 1 {
		n.living[g.tenant]++
		if g.number > 0 && g.number >= n.free[g.called] {
			n.free[g.called] = g.number + 1
		}
	}
}

// left counts one process less. The name of a group that has none is free.
func (n *Node) left(g *group) {
	if g.processes--; g.processes > 0 {
		return
	}
	if n.living[g.tenant]--; n.living[g.tenant] == 0 {
		delete(n.living, g.tenant)
	}
	if n.free[g.called] = min(n.free[g.called], g.number); n.free[g.called] <= 1 {
		delete(n.free, g.called)
	}
}

func groupOf(id Identity, d recording.Declaration) groupKey {
	key := groupKey{folder: id.Folder, job: jobName(id, d), namespace: d.Namespace, pid: d.PID}
	if d.Rank != nil && d.PPID > 1 {
		key.pid = d.PPID
	}
	return key
}

// jobName is what a training process calls its job, else its folder, its pod, its script.
func jobName(id Identity, d recording.Declaration) string {
	script := ""
	if len(d.Argv) > 0 && d.Argv[0] != "" && d.Argv[0] != "-c" && d.Argv[0] != "-" {
		script = path.Base(d.Argv[0])
	}
	name := recording.Name(cmp.Or(d.Job, id.Job, script, id.Pod, "python"))
	if name == Shared { // which is no job's name
		return strings.Trim(Shared, "()")
	}
	return name
}

// rank returns the row of a training process.
func (n *Node) rank(t Tenant, d recording.Declaration) *rank {
	key := rankKey{t, -1}
	if d.Rank != nil && *d.Rank >= 0 {
		key.rank = *d.Rank
	}
	r := n.ranks[key]
	if r == nil {
		r = &rank{Rank: Rank{Tenant: t, Since: n.now}}
		if key.rank >= 0 {
			r.Rank.Rank = unit.Some(*d.Rank)
		}
		n.ranks[key] = r
	}
	if d.WorldSize != nil {
		r.WorldSize = unit.Some(*d.WorldSize)
	}
	return r
}

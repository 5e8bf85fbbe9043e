package host

import (
	"slices"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

func (f *fixture) scan() []int {
	f.t.Helper()
	f.at += 1e9
	if err := f.host.tree.scan(); err != nil {
		f.t.Fatal(err)
	}
	return f.host.tree.order
}

func TestTreeIsTheDescendantsOfKnownProcesses(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 1, start: 1, comm: "agent"}) // Self
	f.process(proc{pid: 10, ppid: 1, group: 10, start: 5, comm: "torchrun"})
	f.process(proc{pid: 11, ppid: 10, group: 10, start: 6, comm: "python (a) b"})
	f.process(proc{pid: 12, ppid: 11, group: 10, start: 7, comm: "pt_data_worker"})
	f.process(proc{pid: 13, ppid: 11, group: 10, start: 8, comm: "python"})
	f.process(proc{pid: 20, ppid: 1, group: 20, start: 5, comm: "gpu child"})
	f.process(proc{pid: 30, ppid: 2, group: 30, start: 5, comm: "stranger"})
	f.job = []Known{{PID: 10, Role: recording.RoleChild}, {PID: 11, StartTicks: 6, Role: recording.RoleMain}}
	if got := f.scan(); !slices.Equal(got, []int{10, 11, 12, 13}) {
		t.Fatalf("members %v", got)
	}
	for pid, role := range map[int]recording.ProcessRole{10: recording.RoleChild, 11: recording.RoleMain, 12: recording.RoleWorker, 13: recording.RoleChild} {
		if got := f.host.tree.members[pid].role; got != role {
			t.Errorf("process %d has role %d, want %d", pid, got, role)
		}
	}
	if head := f.host.tree.head(); head.pid != 11 {
		t.Errorf("head %d, want the main process", head.pid)
	}
}

func TestSpoolRoleWinsOverName(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 11, ppid: 1, start: 6, comm: "python"})
	f.process(proc{pid: 12, ppid: 11, start: 7, comm: "python"})
	f.job = []Known{{PID: 11, Role: recording.RoleMain}}
	f.scan()
	f.job = append(f.job, Known{PID: 12, StartTicks: 7, Role: recording.RoleWorker})
	f.scan()
	if got := f.host.tree.members[12].role; got != recording.RoleWorker {
		t.Errorf("role %d, want worker", got)
	}
}

// A process whose parent ended is handed to init or a subreaper. It still belongs to the job.
func TestOrphansStay(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 10, ppid: 1, group: 10, start: 5, comm: "launcher"})
	f.process(proc{pid: 11, ppid: 10, group: 10, start: 6, comm: "sh"})
	f.process(proc{pid: 12, ppid: 11, group: 10, start: 7, comm: "python"})
	f.job = []Known{{PID: 10}}
	f.scan()
	f.remove("proc/11")
	f.process(proc{pid: 12, ppid: 1, group: 10, start: 7, comm: "python"})
	if got := f.scan(); !slices.Equal(got, []int{10, 12}) {
		t.Fatalf("members %v after the parent ended", got)
	}
	// A grandchild whose parent came and went unseen is told by its process group; its leader may have ended too.
	f.remove("proc/10")
	f.scan()
	f.process(proc{pid: 14, ppid: 1, group: 10, start: 9, comm: "python"})
	if got := f.scan(); !slices.Equal(got, []int{12, 14}) {
		t.Errorf("members %v, want the orphan of the group", got)
	}
}

func TestPIDUsedAgain(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 10, ppid: 1, group: 10, start: 5, comm: "python"})
	f.process(proc{pid: 11, ppid: 10, group: 10, start: 6, comm: "python"})
	f.process(proc{pid: 40, ppid: 11, group: 40, start: 3, comm: "older than its parent's pid"})
	f.job = []Known{{PID: 10, StartTicks: 5}}
	if got := f.scan(); !slices.Equal(got, []int{10, 11}) {
		t.Fatalf("members %v: a child cannot be older than its parent", got)
	}
	f.process(proc{pid: 11, ppid: 2, group: 2, start: 99, comm: "stranger"})
	if got := f.scan(); !slices.Equal(got, []int{10}) {
		t.Errorf("members %v: 11 is somebody else now", got)
	}
	f.process(proc{pid: 10, ppid: 2, group: 2, start: 98, comm: "stranger"})
	if got := f.scan(); len(got) != 0 {
		t.Errorf("members %v: the known process has ended", got)
	}
}

// A job that becomes known late finds children whose parent has ended since.
func TestLateJobFindsChildrenMetBefore(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 10, ppid: 2, start: 5, comm: "python"})
	f.process(proc{pid: 11, ppid: 10, start: 6, comm: "python"})
	f.scan()
	f.process(proc{pid: 11, ppid: 1, start: 6, comm: "python"})
	f.job = []Known{{PID: 10, Role: recording.RoleMain}}
	if got := f.scan(); !slices.Equal(got, []int{10, 11}) {
		t.Errorf("members %v", got)
	}
}

func TestJobCPU(t *testing.T) {
	use := func(start uint64, parent int, own, reaped uint64) cpuUse {
		return cpuUse{start: start, parent: parent, own: own, reaped: reaped}
	}
	before := cpuBook{10: use(1, 1, 100, 0), 11: use(2, 10, 50, 0), 12: use(3, 10, 40, 5)}
	for _, c := range []struct {
		name string
		now  cpuBook
		want uint64
	}{
		{"nothing happened", before, 0},
		{"two worked", cpuBook{10: use(1, 1, 110, 0), 11: use(2, 10, 57, 0), 12: use(3, 10, 40, 5)}, 17},
		{"one worked 8 more, ended and was reaped", cpuBook{10: use(1, 1, 100, 58), 12: use(3, 10, 40, 5)}, 8},
		{"one ended and nobody waited for it", cpuBook{10: use(1, 1, 103, 0), 12: use(3, 10, 40, 5)}, 3},
		{"a child was forked", cpuBook{10: use(1, 1, 100, 0), 11: use(2, 10, 50, 0), 12: use(3, 10, 40, 5), 13: use(9, 11, 6, 0), 14: use(9, 13, 1, 0)}, 7},
		{"a root became known", cpuBook{10: use(1, 1, 100, 0), 11: use(2, 10, 50, 0), 12: use(3, 10, 40, 5), 90: use(1, 1, 99999, 0), 91: use(1, 90, 99999, 0)}, 0},
		{"a pid was used again", cpuBook{10: use(1, 1, 100, 51), 11: use(9, 10, 2, 0), 12: use(3, 10, 40, 5)}, 3},
		{"a chain of parents without end", cpuBook{10: use(7, 11, 100, 0), 11: use(8, 10, 50, 0)}, 0},
	} {
		if got := c.now.used(before); got != c.want {
			t.Errorf("%s: %d ticks, want %d", c.name, got, c.want)
		}
	}
}

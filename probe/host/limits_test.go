package host

import (
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// The machine of these tests: 12 CPUs, a main process and two workers free to use all of them, and a quota of 4 cores that
// neither the CPU count nor an affinity shows (scenario M10).
func m10(t *testing.T, cgroup, mountinfo string) *fixture {
	f := newFixture(t, nil)
	f.write("sys/devices/system/cpu/online", "0-11\n")
	f.write("proc/self/mountinfo", mountinfo)
	f.process(proc{pid: 100, ppid: 1, group: 100, start: 50, comm: "python", cpus: "0-11", cgroup: cgroup})
	f.process(proc{pid: 101, ppid: 100, group: 100, start: 60, comm: "pt_data_worker", cpus: "0-11"})
	f.process(proc{pid: 102, ppid: 100, group: 100, start: 61, comm: "pt_data_worker", cpus: "0-11"})
	f.job = []Known{{PID: 100, StartTicks: 50, Role: recording.RoleMain}}
	return f
}

const (
	v2Mount     = "31 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	hybridMount = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
)

func (f *fixture) limits() recording.Limits {
	f.t.Helper()
	f.run("limits")
	return f.last(recording.KindLimits).Limits()
}

func TestQuotaV2(t *testing.T) {
	f := m10(t, "0::/kubepods/pod7/c1\n", v2Mount)
	pod := "sys/fs/cgroup/kubepods/pod7/"
	f.write(pod+"c1/cpu.max", "max 100000\n")
	f.write(pod+"cpu.max", "400000 100000\n")
	f.write(pod+"cpu.stat", "usage_usec 5\nnr_periods 1000\nnr_throttled 950\nthrottled_usec 7000\n")
	f.write(pod+"c1/cpuset.cpus.effective", "0-11\n")
	f.write(pod+"c1/memory.max", "max\n")
	f.write(pod+"memory.max", "2147483648\n")
	f.run("limits")
	f.write(pod+"cpu.stat", "usage_usec 5\nnr_periods 1010\nnr_throttled 959\nthrottled_usec 8500\n")
	got := f.limits()
	want := recording.Limits{Begin: 2e9, End: 3e9, Quota: 4, CPUSet: 12, Usable: 4, Throttled: 0.9, ThrottledTime: 1500e3, MemoryLimit: 2147483648}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if why := f.why("usable"); why != "least of quota 4, cpuset 12, 12 online, affinity CPU 0-11 of 2 processes" {
		t.Errorf("explained as %q", why)
	}
	if f.host.note.Cgroup != "v2 /kubepods/pod7/c1" {
		t.Errorf("cgroup %q", f.host.note.Cgroup)
	}
}

func TestQuotaV1Hybrid(t *testing.T) {
	f := m10(t, "4:cpu,cpuacct:/docker/c1\n3:cpuset:/docker/c1\n2:memory:/docker/c1\n0::/docker/c1\n", hybridMount)
	f.write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_quota_us", "400000\n")
	f.write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_period_us", "100000\n")
	f.write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n")
	f.write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n")
	f.write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.stat", "nr_periods 100\nnr_throttled 0\nthrottled_time 5\n")
	f.write("sys/fs/cgroup/cpuset/docker/c1/cpuset.effective_cpus", "2-9\n")
	f.write("sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes", "9223372036854771712\n")
	f.run("limits")
	f.write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.stat", "nr_periods 120\nnr_throttled 19\nthrottled_time 2005\n")
	got := f.limits()
	want := recording.Limits{Begin: 2e9, End: 3e9, Quota: 4, CPUSet: 8, Usable: 4, Throttled: 0.95, ThrottledTime: 2000, MemoryLimit: recording.Unknown64}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Sixteen loaders that share one core have one core between them; a mask may name CPUs that are not there.
func TestUsableFollowsTheAffinityOfWorkers(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, other string
		usable       float32
	}{
		{"all workers on one core", "3", "3", 1},
		{"one core each", "3", "5", 2},
		{"overlapping", "0-3", "2-5", 6},
		{"CPUs that could be plugged in", "0-255", "0-255", 12},
	} {
		f := m10(t, "0::/\n", v2Mount)
		f.write("sys/fs/cgroup/cpuset.cpus.effective", "0-11\n")
		f.process(proc{pid: 101, ppid: 100, group: 100, start: 60, comm: "pt_data_worker", cpus: c.first})
		f.process(proc{pid: 102, ppid: 100, group: 100, start: 61, comm: "pt_data_worker", cpus: c.other})
		f.run("limits")
		if got := f.limits(); got.Usable != c.usable || got.CPUSet != 12 || !isNaN(got.Quota) {
			t.Errorf("%s: %+v, want %v usable cores and no quota", c.name, got, c.usable)
		}
		if f.why("quota") != "" {
			t.Errorf("%s: quota is said to be unknown: %s", c.name, f.why("quota"))
		}
	}
}

func TestUsableFallsBackToTheMainProcess(t *testing.T) {
	f := m10(t, "0::/\n", v2Mount)
	f.remove("proc/101")
	f.remove("proc/102")
	f.process(proc{pid: 100, ppid: 1, group: 100, start: 50, comm: "python", cpus: "0-2", cgroup: "0::/\n"})
	f.run("limits")
	if got := f.limits(); got.Usable != 3 {
		t.Errorf("%+v, want the main process's 3 cores", got)
	}
}

// A quota that cannot be seen leaves the usable cores unknown: any number would be too large.
func TestUnseenQuotaIsUnknown(t *testing.T) {
	for _, c := range []struct{ name, cgroup, mountinfo, why string }{
		{"another container's", "0::/../c2\n", v2Mount, "outside what this container shows"},
		{"beyond the mount", "0::/kubepods/c2\n", "31 23 0:26 /kubepods/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "outside what this container shows"},
		{"prefix of a name only", "0::/kubepods/c12\n", "31 23 0:26 /kubepods/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "outside what this container shows"},
		{"nothing mounted", "0::/\n", "", "not mounted"},
		{"no control groups", "", v2Mount, "in none"},
		{"broken file", "0::/broken\n", v2Mount, "unexpected format"},
	} {
		f := m10(t, c.cgroup, c.mountinfo)
		f.write("sys/fs/cgroup/broken/cpu.max", "4 cores\n")
		f.run("limits")
		got := f.limits()
		if !isNaN(got.Quota) || !isNaN(got.Usable) || !isNaN(got.Throttled) || got.ThrottledTime != recording.Unknown64 {
			t.Errorf("%s: %+v, want unknown", c.name, got)
		}
		if !contains(f.why("quota"), c.why) {
			t.Errorf("%s: reason %q, want %q", c.name, f.why("quota"), c.why)
		}
	}
}

// Docker with version 1 and no cgroup namespace: the mount shows the container's group as its root.
func TestMountRootedAtTheContainersGroup(t *testing.T) {
	f := m10(t, "4:cpu:/docker/c1/sub\n", "33 31 0:30 /docker/c1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
	f.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n")
	f.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
	f.write("sys/fs/cgroup/cpu/sub/cpu.cfs_quota_us", "-1\n")
	f.write("sys/fs/cgroup/cpu/sub/cpu.cfs_period_us", "100000\n")
	f.run("limits")
	if got := f.limits(); got.Quota != 1.5 || got.Usable != 1.5 {
		t.Errorf("%+v, want a quota of 1.5 cores", got)
	}
	if !contains(f.why("quota"), "around this container") {
		t.Errorf("no word of the groups around the container: %q", f.why("quota"))
	}
	f.write("sys/fs/cgroup/cpu/release_agent", "\n")
	f.limits()
	if f.why("quota") != "" {
		t.Errorf("the machine's outermost group has nothing around it: %q", f.why("quota"))
	}
}

func TestNoPeriodInTheWindowSaysNothingOfThrottling(t *testing.T) {
	f := m10(t, "0::/\n", v2Mount)
	f.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
	f.write("sys/fs/cgroup/cpu.stat", "nr_periods 10\nnr_throttled 5\nthrottled_usec 1\n")
	f.run("limits")
	if got := f.limits(); !isNaN(got.Throttled) || got.ThrottledTime != 0 || got.Usable != 0.5 {
		t.Errorf("%+v, want an unknown share and 0 ns", got)
	}
}

func TestNoJobNoLimits(t *testing.T) {
	f := newFixture(t, nil)
	f.run("limits")
	f.run("limits")
	if got := f.records(recording.KindLimits); len(got) != 0 {
		t.Errorf("%d records of no job", len(got))
	}
}

func TestCPUList(t *testing.T) {
	for _, c := range []struct {
		list  string
		count int
	}{{"0-3,8", 5}, {"", 0}, {"\n", 0}, {"0", 1}, {"63-64", 2}, {"0-1,1-2", 3}} {
		set, err := parseCPUList([]byte(c.list))
		if err != nil || set.count() != c.count {
			t.Errorf("%q: %d CPUs, %v; want %d", c.list, set.count(), err, c.count)
		}
	}
	for _, bad := range []string{"3-1", "a", "1-", "-1", "0-99999999", "1,,2"} {
		if set, err := parseCPUList([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, set)
		}
	}
	set, _ := parseCPUList([]byte("0-3,8,62-65"))
	if set.String() != "0-3,8,62-65" {
		t.Errorf("written as %s", set)
	}
}

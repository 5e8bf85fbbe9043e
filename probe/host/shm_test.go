package host

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// TestSharedMemory: the job's own /dev/shm is looked at, through its root. What is not there is unknown, and says why.
func TestSharedMemory(t *testing.T) {
	f := m10(t, "0::/\n", v2Mount)
	f.run("limits")
	if n := f.host.note; n.SharedBytes.IsKnown() || n.SharedFree.IsKnown() || !strings.Contains(f.why("shared memory"), "no such file") {
		t.Errorf("%+v, %q", n, f.why("shared memory"))
	}
	f.write("proc/100/root/dev/shm/a", "")
	f.run("limits")
	size, ok := f.host.note.SharedBytes.Get()
	free, okFree := f.host.note.SharedFree.Get()
	if !ok || !okFree || size == 0 || free > size || f.why("shared memory") != "" {
		t.Errorf("%d of %d bytes free, %q", free, size, f.why("shared memory"))
	}
	f.remove("proc/100")
	f.job = []Known{{PID: 200, StartTicks: 70, Role: recording.RoleMain}}
	f.process(proc{pid: 200, ppid: 1, group: 200, start: 70, comm: "python", cpus: "0-11", cgroup: "0::/\n"})
	f.run("limits")
	f.run("limits")
	if f.host.note.SharedBytes.IsKnown() {
		t.Error("another job's /dev/shm is told of as this one's")
	}
}

// TestNoteOfSharedMemory: the note is written again for what counts: a sixteenth less than before, not every page.
func TestNoteOfSharedMemory(t *testing.T) {
	for _, c := range []struct {
		least, free uint64
		want        bool
	}{
		{64 << 20, 63 << 20, false}, {64 << 20, 60 << 20, true}, {64 << 20, 64 << 20, false}, {32 << 20, 64 << 20, false},
		{2 << 20, 1<<20 + 1, false}, {2 << 20, 1 << 20, true}, {1 << 19, 1 << 18, true}, {64 << 30, 61 << 30, false}, {64 << 30, 60 << 30, true},
	} {
		if got := lessFree(c.least, c.free); got != c.want {
			t.Errorf("%d after %d: %v", c.free, c.least, got)
		}
	}
}

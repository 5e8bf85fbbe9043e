package host

import (
	"errors"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

func TestMachine(t *testing.T) {
	f := newFixture(t, nil)
	f.write("sys/devices/system/cpu/online", "0-3\n")
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python", user: 1000, system: 500})
	f.job = []Known{{PID: 10, Role: recording.RoleMain}}
	f.run("machine")
	f.write("proc/stat", "cpu 300 0 90 1150 25 0 0 10 0 0\nprocs_running 3\n")
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python", user: 1150, system: 510})
	f.run("machine")
	got := f.last(recording.KindMachine).Machine()
	want := recording.Machine{Begin: 2e9, End: 3e9, Busy: 2.4, IOWait: 0.2, Steal: 0.1, Runnable: 2, MemoryAvailable: 1 << 20, Cores: 4, Foreign: 0.8}
	got.Foreign = round(got.Foreign)
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	note := f.host.note
	if n, _ := note.Cores.Get(); n != 4 || note.Kernel != "6.1.0-test" || note.MemoryBytes.Or(0) != 4<<20 {
		t.Errorf("host note %+v", note)
	}
}

func round(v float32) float32 { return float32(int(v*1e4+0.5)) / 1e4 }

func TestMachineWithoutAJobHasNoForeignShare(t *testing.T) {
	f := newFixture(t, nil)
	f.run("machine")
	f.run("machine")
	if got := f.last(recording.KindMachine).Machine(); !isNaN(got.Foreign) || got.Busy != 0 || got.Cores != 2 {
		t.Errorf("%+v, want foreign unknown, busy 0 and the 2 CPUs of stat", got)
	}
}

// gVisor serves zeros, an old kernel lacks columns, iowait may run backwards: unknown, never 0.
func TestMachineUnknowns(t *testing.T) {
	f := newFixture(t, nil)
	f.write("proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n")
	f.remove("proc/meminfo")
	f.run("machine")
	f.run("machine")
	got := f.last(recording.KindMachine).Machine()
	if !isNaN(got.Busy) || !isNaN(got.IOWait) || !isNaN(got.Cores) || !isNaN(got.Runnable) || got.MemoryAvailable != unknown {
		t.Errorf("zeros: %+v", got)
	}
	if !contains(f.why("cpu"), "zeros") || f.why("memory") == "" {
		t.Errorf("reasons %v", f.host.note.Why)
	}

	f = newFixture(t, nil)
	f.run("machine")
	f.write("proc/stat", "cpu 110 0 50 1010 2 0 0\n")
	f.run("machine")
	if got := f.last(recording.KindMachine).Machine(); !near(got.Busy, 0.1) || !isNaN(got.IOWait) || !isNaN(got.Steal) {
		t.Errorf("%+v, want busy 0.1, iowait and steal unknown", got)
	}
	f.write("proc/stat", "nonsense")
	if err := f.try("machine"); !errors.Is(err, errFormat) {
		t.Errorf("error %v", err)
	}
}

func TestProcesses(t *testing.T) {
	f := newFixture(t, nil)
	main := proc{pid: 10, ppid: 1, start: 5, comm: "python", user: 100, system: 10, threads: 2, pages: 3, read: 1000, waited: []uint64{5e6, 1e6}}
	f.process(main)
	f.job = []Known{{PID: 10, Role: recording.RoleMain}}
	f.run("processes")
	if n := len(f.records(recording.KindProcess)); n != 0 {
		t.Fatalf("%d records of a first sample", n)
	}
	main.user, main.system, main.read, main.waited = 150, 20, 5000, []uint64{105e6, 1e6, 50e6}
	f.process(main)
	f.process(proc{pid: 11, ppid: 10, start: 8, comm: "pt_data_worker", threads: 1})
	f.process(proc{pid: 12, ppid: 10, start: 8, comm: "ended", state: "Z"})
	f.run("processes")
	got := f.last(recording.KindProcess).Process()
	want := recording.Process{Ref: uint16(recording.RoleMain), Begin: 2e9, End: 3e9, PID: 10, CPU: 0.6, System: 0.1, RunQueue: 0.15,
		RSS: 3 * pageSize, Threads: 2, Read: 4000}
	unread := isNaN(got.Received)
	got.Received = 0
	if got != want || !unread {
		t.Errorf("got  %+v\nwant %+v, received unknown", got, want)
	}
	f.run("processes")
	if n := len(f.records(recording.KindProcess)); n != 3 {
		t.Errorf("%d records, want main twice and the worker once: a process that ended has none", n)
	}
}

// "0 0 0" is a kernel that does not count; a missing file is one that hides or lacks it.
func TestProcessUnknowns(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python", threads: 1})
	f.write("proc/10/task/10/schedstat", "0 0 0\n")
	f.remove("proc/10/io")
	f.job = []Known{{PID: 10}}
	f.run("processes")
	f.run("processes")
	got := f.last(recording.KindProcess).Process()
	if !isNaN(got.RunQueue) || !isNaN(got.Read) || got.CPU != 0 {
		t.Errorf("%+v, want the run queue and the bytes read unknown", got)
	}
	if !contains(f.why("read bytes"), "does not count") {
		t.Errorf("reason %q", f.why("read bytes"))
	}
}

func TestPressure(t *testing.T) {
	f := newFixture(t, nil)
	if err := f.try("pressure"); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("without files: %v, want unsupported", err)
	}
	psi := func(some, full string) string {
		return "some avg10=0.22 avg60=0.17 avg300=0.64 total=" + some + "\nfull avg10=0.22 avg60=0.16 avg300=0.59 total=" + full + "\n"
	}
	f.write("proc/pressure/cpu", "some avg10=0.22 avg60=0.17 avg300=0.64 total=100\n")
	f.write("proc/pressure/io", psi("0", "0"))
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python", cgroup: "0::/job\n"})
	f.write("proc/self/mountinfo", v2Mount)
	f.write("sys/fs/cgroup/job/cpu.pressure", psi("1000000", "0"))
	f.job = []Known{{PID: 10}}
	f.run("limits", "pressure")
	f.write("proc/pressure/cpu", "some avg10=0.22 avg60=0.17 avg300=0.64 total=250100\n")
	f.write("proc/pressure/io", psi("500000", "125000"))
	f.write("sys/fs/cgroup/job/cpu.pressure", psi("2100000", "0"))
	f.run("limits", "pressure")
	records := f.records(recording.KindPressure)
	if len(records) != 2 {
		t.Fatalf("%d records, want the machine's and the job's", len(records))
	}
	machine, job := records[0].Pressure(), records[1].Pressure()
	if machine.Ref != recording.PressureOfMachine || machine.CPUSome != 0.25 || machine.IOSome != 0.5 || machine.IOFull != 0.125 || !isNaN(machine.MemorySome) {
		t.Errorf("machine %+v", machine)
	}
	if job.Ref != recording.PressureOfJob || job.CPUSome != 1 || !isNaN(job.IOSome) {
		t.Errorf("job %+v: more stall than time is 1, a missing file unknown", job)
	}
}

// The outermost group's pressure is the machine's, which is recorded already.
func TestPressureIsNotRecordedTwice(t *testing.T) {
	f := newFixture(t, nil)
	some := "some avg10=0.22 avg60=0.17 avg300=0.64 total=100\n"
	f.write("proc/pressure/cpu", some)
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python", cgroup: "0::/\n"})
	f.write("proc/self/mountinfo", v2Mount)
	f.write("sys/fs/cgroup/cpu.pressure", some)
	f.job = []Known{{PID: 10}}
	f.run("limits", "pressure")
	f.run("limits", "pressure")
	if n := len(f.records(recording.KindPressure)); n != 1 {
		t.Errorf("%d records, want the machine's", n)
	}
	f.write("sys/fs/cgroup/cgroup.type", "domain\n") // the root of a container's namespace
	f.run("limits", "pressure")
	f.run("limits", "pressure")
	if n := len(f.records(recording.KindPressure)); n != 4 {
		t.Errorf("%d records, want one more of the container", n)
	}
}

func TestDisks(t *testing.T) {
	f := newFixture(t, nil)
	f.write("sys/block/nvme0n1/device/model", "x")
	f.write("sys/block/dm-0/size", "1")
	f.write("sys/block/cciss!c0d0/device/model", "x")
	f.write("sys/block/nvme1c1n1/hidden", "1\n")
	lines := func(reads, sectors, millis, busy string) string {
		return "   7 0 loop0 5 0 5 0 0 0 0 0 0 0 0\n" +
			" 259 0 nvme0n1 " + reads + " 7 " + sectors + " " + millis + " 9 0 0 0 0 " + busy + " 5\n" +
			" 259 1 nvme0n1p1 " + reads + " 7 " + sectors + " " + millis + " 9 0 0 0 0 " + busy + " 5\n" +
			" 259 1 nvme1c1n1 " + reads + " 7 " + sectors + " " + millis + " 9 0 0 0 0 " + busy + " 5\n" +
			" 253 0 dm-0 5 0 5 1 5 0 0 0 0 5 5 0 0 0\n" +
			" 104 0 cciss/c0d0 5 0 5 1 5 0 0 0 0 5 5 0 0 0\n" +
			" 254 0 zram0 0 0 0 0 0 0 0 0 0 0 0\n"
	}
	f.write("proc/diskstats", lines("100", "2000", "4294967290", "4294967000"))
	f.run("disks")
	f.write("proc/diskstats", lines("150", "4000", "94", "204"))
	f.run("disks")
	records := f.records(recording.KindDisk)
	if len(records) != 3 {
		t.Fatalf("%d records, want nvme0n1, dm-0 and cciss/c0d0", len(records))
	}
	got := records[0].Device()
	want := recording.Device{Begin: 2e9, End: 3e9, Read: 2000 * 512, Ops: 50, Busy: 0.5, ReadWait: 0.002}
	if got != want {
		t.Errorf("got  %+v\nwant %+v: milliseconds wrap at 32 bits", got, want)
	}
	if idle := records[1].Device(); idle.Read != 0 || !isNaN(idle.ReadWait) {
		t.Errorf("%+v: no read, no mean wait", idle)
	}
	names := f.memo.Streams()[0].Notes.DeviceNames
	if len(names) != 3 || names[0].Name != "nvme0n1" || names[0].Sort != recording.SortPhysical || names[1].Sort != recording.SortVirtual || names[2].Name != "cciss/c0d0" {
		t.Errorf("names %+v", names)
	}
	f.write("proc/diskstats", lines("3", "5", "1", "1"))
	f.run("disks")
	if n := len(f.records(recording.KindDisk)); n != 5 {
		t.Errorf("%d records: a disk that was replaced has no window", n)
	}
}

const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: %lo   11307    0    0    0     0          0         0  2776770   11307    0    0    0     0       0          0
  eth0:%eth 7 0 0 0 0 0 0 5 5 0 0 0 0 0 0
  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
`

func TestNetwork(t *testing.T) {
	f := newFixture(t, nil)
	f.write("sys/class/net/eth0/speed", "8\n") // Mbit/s
	f.write("sys/class/net/eth0/device/vendor", "x")
	f.write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "1000\n")
	f.write("proc/self/net/dev", netDevWith("100", "2000"))
	f.run("network")
	f.write("proc/self/net/dev", netDevWith("700", "502000"))
	f.write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "251000\n")
	f.run("network")
	records := f.records(recording.KindNet)
	if len(records) != 3 {
		t.Fatalf("%d records, want lo, eth0 and the InfiniBand port", len(records))
	}
	lo, eth, ib := records[0].Device(), records[1].Device(), records[2].Device()
	if lo.Read != 600 || !isNaN(lo.Busy) || eth.Read != 500000 || eth.Busy != 0.5 || ib.Read != 1e6 || !isNaN(eth.Ops) {
		t.Errorf("lo %+v\neth0 %+v\nib %+v", lo, eth, ib)
	}
	names := f.memo.Streams()[0].Notes.DeviceNames
	if names[0].Sort != recording.SortLoopback || names[1].Sort != recording.SortPhysical || names[2].Name != "mlx5_0/1" {
		t.Errorf("names %+v", names)
	}

	// The job turns up in a network namespace of its own: its eth0 is another one.
	f.process(proc{pid: 10, ppid: 1, start: 5, comm: "python"})
	f.write("proc/10/net/dev", netDevWith("0", "999999999"))
	f.job = []Known{{PID: 10}}
	f.run("network")
	if n := len(f.records(recording.KindNet)); n != 3 {
		t.Errorf("%d records: counters of two namespaces were compared", n)
	}
	f.write("proc/10/net/dev", netDevWith("0", "1000000099"))
	f.run("network")
	if got := f.records(recording.KindNet); got[3].Device().Read != 100 {
		t.Errorf("%+v, want 100 bytes/s", got[3].Device())
	}
}

func TestUsage(t *testing.T) {
	f := newFixture(t, nil)
	f.process(proc{pid: 9, start: 1, comm: "datawait", user: 3, system: 4, pages: 2})
	cpu, rss, err := UsageOf(f.fs, "9")
	if cpu != 70e6 || rss != 2*pageSize || err != nil {
		t.Errorf("%d ns, %d bytes, %v", cpu, rss, err)
	}
	f.process(proc{pid: 9, start: 1, comm: "datawait", state: "Z"})
	if _, _, err := UsageOf(f.fs, "9"); err == nil {
		t.Error("a process that ended has a usage")
	}
	if cpu, rss, err := UsageOf(Local(), "self"); err != nil || cpu == unknown || rss < 1<<20 {
		t.Errorf("this process: %d ns, %d bytes, %v", cpu, rss, err)
	}
}

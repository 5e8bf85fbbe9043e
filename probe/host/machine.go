package host

import (
	"bytes"
	"fmt"

	"github.com/datawait/datawait/probe/recording"
)

// machineProbe keeps the previous sample of the machine.
type machineProbe struct {
	seen bool
	at   uint64 // ns
	cpu  machineTimes

	treeAt uint64 // ns, of book
	book   cpuBook
}

// sampleMachine writes one MACHINE record.
func (h *Host) sampleMachine() error {
	h.describeMachine()
	treeErr := h.tree.scan()
	at := h.now()
	cpu, err := h.machineTimes()
	if err != nil {
		return err
	}
	r := recording.Machine{Begin: h.machine.at, End: at}
	r.MemoryAvailable = h.memory().available
	r.Cores = h.online(cpu)
	r.Runnable = h.runnable(cpu)
	before := h.machine
	h.machine = machineProbe{true, at, cpu, h.tree.scanned, h.tree.book()}
	if before.seen && at > before.at {
		setTimes(&r, before.cpu, cpu, at-before.at)
		r.Foreign = foreign(r.Busy, before, h.machine)
		if treeErr != nil {
			r.Foreign = nan
		}
		err = h.out.Append(r.Encode())
	}
	if noteErr := h.writeNote(); err == nil {
		err = noteErr
	}
	if err == nil {
		err = treeErr
	}
	return err
}

func (h *Host) machineTimes() (machineTimes, error) {
	b, err := h.files.read(h.files.Proc + "/stat")
	if err != nil {
		return machineTimes{}, err
	}
	return parseMachineTimes(b)
}

// setTimes fills in what /proc/stat tells of a window of nanoseconds. Where the kernel counts nothing, all of it is unknown.
func setTimes(r *recording.Machine, before, cur machineTimes, window uint64) {
	r.Busy, r.IOWait, r.Steal = nan, nan, nan
	if !cur.measured() {
		return
	}
	r.Busy = cores(growth(cur.busy(), before.busy()), window)
	r.IOWait = cores(growth(cur.ioWait, before.ioWait), window)
	r.Steal = cores(growth(cur.steal, before.steal), window)
}

// foreign returns the busy cores outside the job. Both are rates over windows that differ by the time a scan takes, and both
// count in ticks, so a small negative difference is a 0. While no process of the job is known, nothing can be said.
func foreign(busy float32, before, cur machineProbe) float32 {
	if len(before.book) == 0 || len(cur.book) == 0 || cur.treeAt <= before.treeAt {
		return nan
	}
	f := busy - cores(cur.book.used(before.book), cur.treeAt-before.treeAt)
	if f < 0 {
		return 0
	}
	return f
}

// runnable returns the tasks that run or want to, but for this thread, which runs while it reads the number.
func (h *Host) runnable(cpu machineTimes) float32 {
	n := cpu.running
	if n == unknown || n == 0 {
		b, err := h.files.read(h.files.Proc + "/loadavg")
		if err != nil {
			return nan
		}
		n = parseRunnable(b)
	}
	if n == unknown || n == 0 {
		return nan // 0 cannot be: somebody reads
	}
	return float32(n - 1)
}

// online returns the number of CPUs online.
func (h *Host) online(cpu machineTimes) float32 {
	if set := h.onlineSet(); set != nil {
		return float32(set.count())
	}
	if cpu.cpus > 0 {
		return float32(cpu.cpus)
	}
	return nan
}

// onlineSet returns the CPUs online, nil where /sys does not tell.
func (h *Host) onlineSet() cpuSet {
	b, err := h.files.read(h.files.Sys + "/devices/system/cpu/online")
	if err != nil {
		return nil
	}
	set, err := parseCPUList(b)
	if err != nil {
		return nil
	}
	return set
}

func (h *Host) memory() memory {
	b, err := h.files.read(h.files.Proc + "/meminfo")
	if err != nil {
		h.because("memory", err.Error())
		return memory{unknown, unknown}
	}
	h.because("memory", "")
	return parseMemory(b)
}

// describeMachine fills in the host note once.
func (h *Host) describeMachine() {
	if h.note.Kernel != "" {
		return
	}
	h.note.Kernel = "unknown"
	if b, err := h.files.read(h.files.Proc + "/sys/kernel/osrelease"); err == nil {
		h.note.Kernel = string(bytes.TrimSpace(b))
	}
	h.note.MemoryBytes = maybe[uint64](h.memory().total, "meminfo has no MemTotal")
	if cpu, err := h.machineTimes(); err == nil {
		if n := h.online(cpu); n > 0 {
			h.note.Cores = maybe[int64](uint64(n), "")
		}
		if !cpu.measured() {
			h.because("cpu", fmt.Sprintf("%s/stat holds zeros only, as in a sandbox: CPU use of the machine is not known", h.files.Proc))
		}
	}
	h.dirty = true
}

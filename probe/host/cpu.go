package host

import (
	"bytes"
	"fmt"
)

// machineTimes is what /proc/stat says of the whole machine: CPU time since boot in ticks (see userHZ), over all CPUs.
// https://docs.kernel.org/filesystems/proc.html, "1.7 Miscellaneous kernel statistics in /proc/stat".
//
//	cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0
//	cpu0 1393280 32966 572056 13343292 6130 0 17875 0 23933 0
//	procs_running 2
//
// Guest time is contained in user and nice.
type machineTimes struct {
	user, nice, system, idle, irq, softirq uint64
	ioWait                                 uint64 // idle with a read or write outstanding; may decrease
	steal                                  uint64 // the hypervisor ran somebody else; absent before 2.6.11
	cpus                                   int    // "cpuN" lines: CPUs online
	running                                uint64 // tasks running or runnable now, the reader among them
}

func parseMachineTimes(b []byte) (machineTimes, error) {
	t := machineTimes{running: unknown}
	seen := false
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		key, rest := nextField(line)
		switch {
		case string(key) == "cpu":
			t.readTotals(rest)
			seen = true
		case bytes.HasPrefix(key, []byte("cpu")):
			t.cpus++
		case string(key) == "procs_running":
			t.running, _ = nextNumber(rest)
		}
	}
	if !seen || t.user == unknown || t.idle == unknown {
		return machineTimes{}, fmt.Errorf("parsing stat: %w", errFormat)
	}
	return t, nil
}

func (t *machineTimes) readTotals(fields []byte) {
	for _, f := range []*uint64{&t.user, &t.nice, &t.system, &t.idle, &t.ioWait, &t.irq, &t.softirq, &t.steal} {
		*f, fields = nextNumber(fields)
	}
}

// busy returns ticks spent running something.
func (t machineTimes) busy() uint64 { return sum(t.user, t.nice, t.system, t.irq, t.softirq) }

// measured reports whether the kernel counts at all: a sandbox such as gVisor serves a file of zeros.
func (t machineTimes) measured() bool { return t.busy() != 0 || t.idle != 0 }

// parseRunnable returns the tasks running or runnable now, the reader among them, from /proc/loadavg:
// "0.20 0.18 0.12 1/80 11206" (proc_loadavg(5)). The averages themselves span a minute and more, and count tasks that wait
// for a disk: they say nothing of one window.
func parseRunnable(b []byte) uint64 {
	field, _ := nextField(skipFields(b, 3))
	running, _, found := bytes.Cut(field, []byte{'/'})
	if v, ok := decimal(running); ok && found {
		return v
	}
	return unknown
}

// memory is what /proc/meminfo says, in bytes.
type memory struct {
	total     uint64
	available uint64 // what could be had without swapping; unknown before Linux 3.14
}

func parseMemory(b []byte) memory {
	return memory{total: kibibytes(value(b, "MemTotal:")), available: kibibytes(value(b, "MemAvailable:"))}
}

func kibibytes(v uint64) uint64 {
	if v > unknown>>10 { // unknown is among them
		return unknown
	}
	return v << 10
}

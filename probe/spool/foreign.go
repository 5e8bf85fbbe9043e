package spool

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// silentFor is how long a ring of a Yard may stand still whose process is not seen: a validation or a checkpoint takes minutes.
const silentFor = 3600e9

// foreignEnded reports whether a process of another pid namespace has ended, whose pid means another process here. Where it was seen
// in /proc once it has ended when it is there no more; else its ring is followed until it is closed, or has stood still for long.
func (d *Drainer) foreignEnded(r *ring, now uint64) bool {
	if d.options.Silent == 0 {
		return false
	}
	if r.moved != r.header.Head || r.movedAt == 0 {
		r.moved, r.movedAt = r.header.Head, now
	}
	if r.checked == 0 || now-r.checked >= foreignEvery {
		r.checked = now
		r.outside = outsidePID(r.outside, r.pid, r.ticks, r.reader.Declaration().Namespace)
		if r.outside < 0 {
			return true
		}
	}
	return r.outside == 0 && now-r.movedAt > d.options.Silent
}

// foreignEvery is how often, in ns, a process of another namespace is looked for.
const foreignEvery = 5e9

// outsidePID returns what a process of another pid namespace is called here: known, if it still is that; else looked for; 0 if it is not
// seen, -1 if it was known and is no more. A process began at one time whoever counts, so that is compared first, which is cheap.
func outsidePID(known, pid int, ticks, namespace uint64) int {
	if known > 0 {
		if processLives(known, ticks) {
			return known
		}
		return -1
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		candidate, err := strconv.Atoi(name)
		if err == nil && processLives(candidate, ticks) && namespaceOf(candidate) == namespace && insideIs(candidate, pid) {
			return candidate
		}
	}
	return 0
}

func namespaceOf(pid int) uint64 {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	if err != nil {
		return 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// insideIs reports whether a process is called that in its own namespace: the last number of NSpid (proc_pid_status(5)).
func insideIs(pid, inside int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := strings.Cut(string(rest), "\n")
	fields := strings.Fields(line)
	return ok && len(fields) > 0 && fields[len(fields)-1] == strconv.Itoa(inside)
}

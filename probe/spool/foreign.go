package spool

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// silentFor is how long a ring of a Yard may stand still whose process is not seen: a validation or a checkpoint takes minutes.
const silentFor = 6 * 3600e9

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
		known := r.outside
		if r.outside = d.census.find(now, known, r); known > 0 && r.outside == 0 {
			return true
		}
	}
	r.silent = r.outside == 0 && now-r.movedAt > d.options.Silent
	return r.silent
}

// foreignEvery is how often, in ns, a process of another namespace is looked for.
const foreignEvery = 5e9

// census is which processes began when: a process began at one time whoever counts. Thousands of rings may be of processes that are not
// seen, so it is made once for all of them.
type census struct {
	at    uint64           // ns; 0 = not yet
	began map[uint64][]int // pids, by clock ticks since boot
}

// find returns what the process of a ring is called here: known, if it still is that, else looked for; 0 if it is not seen.
func (c *census) find(now uint64, known int, r *ring) int {
	if known > 0 {
		if processLives(known, r.ticks) {
			return known
		}
		return 0
	}
	if c.at == 0 || now-c.at >= foreignEvery {
		c.at = now
		c.take()
	}
	namespace := r.reader.Declaration().Namespace
	for _, pid := range c.began[r.ticks] {
		if !processLives(pid, r.ticks) {
			continue
		}
		// Whose namespace it is may be hidden (ptrace(2)); what it is called there, and when it began, is not.
		if of := namespaceOf(pid); (of == namespace || of == 0) && insideIs(pid, r.pid) {
			return pid
		}
	}
	return 0
}

func (c *census) take() {
	c.began = map[uint64][]int{}
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if _, ticks, ok := statOf(pid); ok {
				c.began[ticks] = append(c.began[ticks], pid)
			}
		}
	}
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

// insideIs reports whether a process has a namespace of its own, and is called that in it: the last number of NSpid (proc_pid_status(5)).
func insideIs(pid, inside int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := strings.Cut(string(rest), "\n")
	fields := strings.Fields(line)
	return ok && len(fields) > 1 && fields[len(fields)-1] == strconv.Itoa(inside)
}

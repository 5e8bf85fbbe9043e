package host

import (
	"bytes"
	"fmt"
)

// processStat is the part of /proc/PID/stat that is used (proc_pid_stat(5); field numbers are its own).
type processStat struct {
	comm    []byte // 2, without parentheses; valid as long as the bytes parsed
	state   byte   // 3: R S D Z T …
	ppid    int    // 4
	group   int    // 5: process group
	user    uint64 // 14: ticks
	system  uint64 // 15: ticks
	reaped  uint64 // 16 + 17: ticks of children that ended and were waited for, and of theirs
	threads uint64 // 20
	start   uint64 // 22: ticks since boot; with the pid it identifies a process
	rss     uint64 // 24: pages
}

// parseProcessStat reads "1234 (python train.py) S 1 …". The name may hold spaces and parentheses, so fields are counted
// from the last one that closes.
func parseProcessStat(b []byte) (processStat, error) {
	var s processStat
	first, last := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if first < 0 || last < first {
		return s, fmt.Errorf("parsing a process's stat: %w", errFormat)
	}
	s.comm = b[first+1 : last]
	state, rest := nextField(b[last+1:])
	ppid, rest := nextNumber(rest)
	group, rest := nextNumber(rest)
	if len(state) != 1 || ppid >= 1<<31 || group >= 1<<31 {
		return s, fmt.Errorf("parsing a process's stat: %w", errFormat)
	}
	s.state, s.ppid, s.group = state[0], int(ppid), int(group)
	rest = skipFields(rest, 8) // 6 … 13
	s.user, rest = nextNumber(rest)
	s.system, rest = nextNumber(rest)
	childUser, rest := nextNumber(rest)
	childSystem, rest := nextNumber(rest)
	s.reaped = sum(childUser, childSystem)
	s.threads, rest = nextNumber(skipFields(rest, 2)) // 18, 19
	s.start, rest = nextNumber(skipFields(rest, 1))   // 21
	s.rss, _ = nextNumber(skipFields(rest, 1))        // 23
	if s.start == unknown {
		return s, fmt.Errorf("parsing a process's stat: %w", errFormat)
	}
	return s, nil
}

// ended reports whether nothing of the process is left but its exit status.
func (s processStat) ended() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// own returns the process's CPU time in ticks.
func (s processStat) own() uint64 { return sum(s.user, s.system) }

// processStatus is the part of /proc/PID/status that is used (proc_pid_status(5)).
type processStatus struct {
	allowed     cpuSet // CPUs the main thread may run on, cut by its cpuset
	allowedRead bool
	voluntary   uint64 // context switches of the main thread: it waited for something
	involuntary uint64 // it was put off the CPU
}

func parseProcessStatus(b []byte) processStatus {
	s := processStatus{voluntary: unknown, involuntary: unknown}
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		key, rest, _ := bytes.Cut(line, []byte{':'})
		switch string(key) {
		case "Cpus_allowed_list":
			set, err := parseCPUList(rest)
			s.allowed, s.allowedRead = set, err == nil && len(set) > 0
		case "voluntary_ctxt_switches":
			s.voluntary, _ = nextNumber(rest)
		case "nonvoluntary_ctxt_switches":
			s.involuntary, _ = nextNumber(rest)
		}
	}
	return s
}

// parseReadBytes returns read_bytes of /proc/PID/io: bytes the process caused to be fetched from block devices
// (proc_pid_io(5)). Reads from FUSE and network file systems are not in it, nor is read-ahead another process caused.
func parseReadBytes(b []byte) uint64 { return value(b, "read_bytes:") }

// parseRunQueue returns nanoseconds a thread was runnable and not running: field 2 of /proc/PID/task/TID/schedstat
// (Documentation/scheduler/sched-stats.rst). "0 0 0" is what a kernel without CONFIG_SCHED_INFO writes, and a thread
// that has not run yet: unknown.
func parseRunQueue(b []byte) uint64 {
	running, b := nextNumber(b)
	waiting, b := nextNumber(b)
	slices, _ := nextNumber(b)
	if slices == unknown || running == 0 && waiting == 0 && slices == 0 {
		return unknown
	}
	return waiting
}

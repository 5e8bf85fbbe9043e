package spool

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// processLives reports whether the process runs: the same one, not a later one with its number.
func processLives(pid int, startTicks uint64) bool {
	state, started, ok := statOf(pid)
	return ok && started == startTicks && state != 'Z' && state != 'X'
}

func statOf(pid int) (state byte, startTicks uint64, ok bool) {
	var line [1024]byte // a stat has less than half of that
	n, err := readOnce("/proc/"+strconv.Itoa(pid)+"/stat", line[:])
	if err != nil {
		return 0, 0, false
	}
	return parseStat(line[:n])
}

// readOnce reads the beginning of a file in three system calls. os.ReadFile takes ten, and hundreds of processes are asked for each second.
func readOnce(path string, into []byte) (n int, err error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	for {
		if n, err = syscall.Read(fd, into); err != syscall.EINTR {
			return n, err
		}
	}
}

// foreign reports whether the ring's process counts pids in another namespace than [Options.Alive] does (a container of the
// job): there its pid is another process's, or nobody's.
func (d *Drainer) foreign(r *ring) bool {
	if r.reader == nil {
		return false
	}
	of := r.reader.Declaration().Namespace
	return of != 0 && d.options.Namespace != 0 && of != d.options.Namespace
}

// Namespace returns the inode of this process's pid namespace (pid_namespaces(7)), 0 where it cannot be read.
func Namespace() uint64 {
	info, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// parseStat returns the state and start time of /proc/<pid>/stat: fields 3 and 22 (proc_pid_stat(5)). The name in field 2 may
// hold anything, brackets and blanks too, so fields are counted from its last bracket. A zombie ('Z') writes nothing more.
func parseStat(stat []byte) (state byte, startTicks uint64, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, false
	}
	startTicks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return fields[0][0], startTicks, err == nil
}

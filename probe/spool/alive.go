package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// processLives reports whether the process runs: the same one, not a later one with its number.
func processLives(pid int, startTicks uint64) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	state, started, ok := parseStat(stat)
	return ok && started == startTicks && state != 'Z' && state != 'X'
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

package cost

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cpuTime is the CPU time of a process in seconds: fields 14 and 15 of its stat, in ticks of 10 ms (proc_pid_stat(5)).
func cpuTime(pid int) float64 {
	f := statFields(pid)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100
}

// parent is field 4 of a process's stat.
func parent(pid int) int {
	f := statFields(pid)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// statFields are those behind the name, which may hold anything.
func statFields(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// pss is the memory of a process in bytes, a page that several share counted in parts; 0 where the process is gone.
func pss(pid int) float64 { return float64(sizeOf(pid, "smaps_rollup", "Pss:")) }

// peak is VmHWM, the most that a process ever had resident.
func peak(pid int) int64 { return sizeOf(pid, "status", "VmHWM:") }

// sizeOf reads a size from a file of /proc/PID.
func sizeOf(pid int, file, key string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kB, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kB << 10
		}
	}
	return 0
}

package folder

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// rankVariables tell that a launcher started several wrappers on this node, one per rank.
var rankVariables = []string{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK"}

// Key names the job on this node, and the rank this wrapper starts, "" if it is the only one. Wrappers that one launcher
// started share the launcher as their parent, and with it the key; any other wrapper has a key of its own.
func Key(getenv func(string) string, parent, self Process) (key, rank string) {
	for _, v := range rankVariables {
		if rank = getenv(v); rank == "" {
			continue
		}
		key = "job-" + parent.String()
		if restart := getenv("TORCHELASTIC_RESTART_COUNT"); restart != "" {
			key += "-" + safe(restart)
		}
		return key, safe(rank)
	}
	return OwnKey(self), ""
}

// OwnKey is the key of a wrapper that shares its job with no other.
func OwnKey(self Process) string { return "run-" + self.String() }

// Process is a process id with its start, which together name one process for good.
type Process struct {
	PID   int
	Start string // field 22 of /proc/<pid>/stat, "" if not readable
}

// String returns "1234-987654".
func (p Process) String() string { return fmt.Sprintf("%d-%s", p.PID, p.Start) }

// LookUp reads a process's start.
func LookUp(pid int) Process {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return Process{PID: pid}
	}
	return Process{PID: pid, Start: fields[19]}
}

func formatTicks(start uint64) string { return strconv.FormatUint(start, 10) }

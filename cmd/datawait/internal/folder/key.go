package folder

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// rankVariables tell that a launcher started several wrappers on this node, one per rank.
var rankVariables = []string{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK"}

// Key names the job on this node, and the rank this wrapper starts. Wrappers that one launcher started share the launcher as
// their parent, and with it the key; for any other wrapper both are "".
func Key(getenv func(string) string, parent Process) (key, rank string) {
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
	return "", ""
}

// Process is a process id with its start, which together name one process for good, in one PID namespace.
type Process struct {
	PID   int
	Start string // field 22 of /proc/<pid>/stat, "" if not readable
	Space string // number of the namespace, "" if not readable
	Ended bool   // it is a zombie: dead, and not waited for yet
}

// String returns "1234-987654-4026531836".
func (p Process) String() string { return fmt.Sprintf("%d-%s-%s", p.PID, p.Start, p.Space) }

// LookUp reads a process's start.
func LookUp(pid int) Process {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return Process{PID: pid}
	}
	link, _ := os.Readlink("/proc/self/ns/pid") // "pid:[4026531836]" (pid_namespaces(7))
	return Process{PID: pid, Start: fields[19], Space: strings.Trim(link, "pid:[]"), Ended: fields[0] == "Z" || fields[0] == "X"}
}

func formatTicks(start uint64) string { return strconv.FormatUint(start, 10) }

package child

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// Usage is what a process has used of the machine.
type Usage struct {
	CPU uint64 // ns since it started
	RSS uint64 // bytes; recording.Unknown64 if not known
}

// ownUsage asks the kernel about this process.
func ownUsage() Usage { return Usage{CPU: clock.ProcessCPU(), RSS: ownRSS()} }

// ownRSS reads field 2 of /proc/self/statm, resident pages (proc_pid_statm(5)).
func ownRSS() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(statm)
	if err != nil || len(fields) < 2 {
		return recording.Unknown64
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return recording.Unknown64
	}
	return pages * uint64(os.Getpagesize())
}

// coresSince returns the cores used since before, over a span in ns.
func (u Usage) coresSince(before Usage, span uint64) float32 {
	if span == 0 || u.CPU < before.CPU {
		return float32(math.NaN())
	}
	return float32(float64(u.CPU-before.CPU) / float64(span))
}

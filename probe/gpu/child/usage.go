package child

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// Usage is what a process has used of the machine.
type Usage struct {
	CPU uint64 // ns since it started
	RSS uint64 // bytes; recording.Unknown64 if not known
}

// self asks the kernel about this process. A source in short windows asks ten times a second, and to open the file takes several times as long
// as to read it.
type self struct {
	statm int // descriptor of /proc/self/statm; -1 without
	buf   [128]byte
}

func newSelf() *self {
	statm, err := syscall.Open("/proc/self/statm", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		statm = -1
	}
	return &self{statm: statm}
}

func (s *self) close() { syscall.Close(s.statm) }

func (s *self) usage() Usage { return Usage{CPU: clock.ProcessCPU(), RSS: s.rss()} }

// rss is field 2 of /proc/self/statm, resident pages (proc_pid_statm(5)).
func (s *self) rss() uint64 {
	n, err := syscall.Pread(s.statm, s.buf[:], 0)
	if err != nil {
		return recording.Unknown64
	}
	fields := bytes.Fields(s.buf[:n])
	if len(fields) < 2 {
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

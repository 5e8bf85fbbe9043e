// Package clock reads the one clock every record uses: CLOCK_MONOTONIC in nanoseconds, as Python's time.perf_counter_ns
// and time.monotonic_ns do on Linux (SPEC, "Conventions"), so that times of the hook and of the agent compare.
//
// Go's own time package cannot give it: a [time.Time] hides its monotonic reading, whose origin is the start of the process.
// Read [Mono] and [Pair].
package clock

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Mono returns CLOCK_MONOTONIC in nanoseconds. It stands still while the machine is suspended.
func Mono() uint64 { return read(unix.CLOCK_MONOTONIC) }

// Real returns CLOCK_REALTIME in nanoseconds since 1970. It may be set, forwards and backwards.
func Real() uint64 { return read(unix.CLOCK_REALTIME) }

// ThreadCPU returns the CPU time in nanoseconds the calling thread has used. Lock the goroutine to its thread
// ([runtime.LockOSThread]) before comparing two readings.
func ThreadCPU() uint64 { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessCPU returns the CPU time in nanoseconds all threads of this process have used.
func ProcessCPU() uint64 { return read(unix.CLOCK_PROCESS_CPUTIME_ID) }

// read cannot fail: the clocks above exist on every Linux Go runs on, and the pointer is good (clock_gettime(2)).
func read(id int32) uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(fmt.Sprintf("reading clock %d: %v", id, err))
	}
	return uint64(t.Nano())
}

// pairTries is how often Pair reads both clocks to find an undisturbed pair.
const pairTries = 5

// Pair returns both clocks as of the same instant: the realtime clock is read between two readings of the monotonic one,
// and of a few tries the narrowest counts, so a preempted try does not skew the pair.
func Pair() (mono, real uint64) {
	narrowest := ^uint64(0)
	for range pairTries {
		before := Mono()
		r := Real()
		after := Mono()
		if width := after - before; width < narrowest {
			narrowest, mono, real = width, before+width/2, r
		}
	}
	return mono, real
}

// BootID returns the kernel's identity of this boot. Monotonic times compare only within one boot.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Package dcgm reads the profiling counters of GPUs from NVIDIA's DCGM, through go-dcgm and a host engine.
//
// It decides what to ask for (the metrics an A100 counts in one pass, and never two groups that would be multiplexed), when a
// value is one (status, blank and age are all looked at), and which stretch of time it speaks of. It refuses to guess: a sample
// that is missing leaves a gap, and a window whose counters contradict each other is marked untrusted, never idle.
//
// On an A100 the counters have one owner. So an engine that already runs is used, and one inside this process is started only
// when that was asked for. Everything here may hang or die inside NVIDIA's library: it belongs into a child process
// (package child), and every call is watched.
//
// Read [Source] first; watch.go has what is asked of the engine, read.go and mark.go how its samples are fetched so that each counts once,
// windows.go the arithmetic. What DCGM is known to do, row by row, is in testdata/behaviour.txt, with a test of each.
package dcgm

import "time"

// Options of the source.
type Options struct {
	Address  string        // "host:port", a path, or "unix:///…" of a host engine; "" = where one usually listens
	Embedded bool          // start an engine in this process instead
	Interval time.Duration // of a window; 0 = 100 ms, the least that DCGM measures rightly
	Patience time.Duration // with one call; 0 = 8 s
}

// Shortest is the shortest window: DCGM accepts less and then returns nonsense (NVIDIA/DCGM issue 310).
const Shortest = 100 * time.Millisecond

// Pause is how long to wait between two polls: each costs one request per GPU and field, and the engine keeps what is not asked for yet.
func Pause(interval time.Duration) time.Duration {
	return max(interval, min(100*interval, 10*time.Second))
}

// Name is the rung of the ladder.
const Name = "dcgm"

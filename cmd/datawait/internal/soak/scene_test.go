package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whom a blow hits.
const (
	trainer  = "trainer"
	worker   = "worker"
	agent    = "agent"
	gpuChild = "gpu-child"
)

// blow is what a victim gets; a stopped one is continued after a while.
type blow struct {
	signal syscall.Signal
	pause  time.Duration
}

func (b blow) String() string { return unix.SignalName(b.signal) }

// scene is everything that chance decides about one run.
type scene struct {
	seed    uint64
	command string // record or diagnose
	loader  string // of train.py
	seconds float64
	build   float64
	compute float64
	workers int
	length  int
	epochs  int  // 0 = until the time is over
	replace bool // the training replaces itself instead of ending
	gpu     bool
	victim  string
	blow    blow
	running bool // the moment counts from the training's first line, else from the start of datawait
	after   time.Duration
	again   bool     // the next run goes into the same folder
	more    []string // flags of datawait
	around  []string // what the training is started with
}

func newScene(t *testing.T, seed uint64) *scene {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	s := &scene{seed: seed, command: "record", workers: 1 + r.IntN(3), length: 20 + r.IntN(2000), gpu: r.IntN(3) == 0, again: r.IntN(4) == 0}
	s.loader = pick(r, map[string]int{"plain": 30, "workers": 60, "torch": 10})
	s.seconds = 0.3 + 1.2*r.Float64()
	s.build, s.compute = between(r, 0, 0.008), between(r, 0, 0.004)
	if r.IntN(8) == 0 {
		s.build, s.compute = 0, 0 // as fast as Python can
	}
	if r.IntN(10) < 3 {
		s.command, s.seconds, s.length = "diagnose", 12, 2000
		s.build, s.compute = between(r, 0.002, 0.008), between(r, 0.001, 0.004)
	}
	s.victim = pick(r, map[string]int{trainer: 30, worker: 25, agent: 35, gpuChild: 10})
	switch s.victim {
	case worker:
		if s.loader == "plain" {
			s.loader = "workers"
		}
	case gpuChild:
		s.gpu = true
	}
	s.blow = pickBlow(r)
	s.running, s.after = s.moment(r)
	return s
}

// moment is when the blow falls: in the first milliseconds, while the training starts, while it runs, or around its end.
func (s *scene) moment(r *rand.Rand) (running bool, after time.Duration) {
	length := time.Duration(s.seconds * float64(time.Second))
	if s.command == "diagnose" {
		length = diagnosed
	}
	switch n := r.IntN(20); {
	case n < 2:
		return false, time.Duration(r.Int64N(int64(30 * time.Millisecond)))
	case n < 4:
		return false, time.Duration(r.Int64N(int64(400 * time.Millisecond)))
	case n < 16:
		return true, time.Duration(r.Int64N(int64(length)))
	}
	return true, length - 100*time.Millisecond + time.Duration(r.Int64N(int64(700*time.Millisecond)))
}

// diagnosed is the budget of a diagnosis here.
const diagnosed = 6 * time.Second

func pickBlow(r *rand.Rand) blow {
	switch n := r.IntN(10); {
	case n < 7:
		return blow{signal: syscall.SIGKILL}
	case n < 9:
		return blow{signal: syscall.SIGSTOP, pause: time.Duration(r.Int64N(int64(1500 * time.Millisecond)))}
	}
	return blow{signal: syscall.SIGTERM}
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// pick draws one of the names, each as often as its weight.
func pick(r *rand.Rand, weights map[string]int) string {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := r.IntN(sum)
	for _, name := range sortedKeys(weights) {
		if n -= weights[name]; n < 0 {
			return name
		}
	}
	panic("unreachable")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (s *scene) String() string {
	return fmt.Sprintf("seed %d: %s, %s loader (%d workers, %d batches, %.2f + %.2f ms, gpu %v) of %.1f s; %s gets %v after %v (pause %v, running %v)",
		s.seed, s.command, s.loader, s.workers, s.length, 1e3*s.build, 1e3*s.compute, s.gpu, s.seconds, s.victim, s.blow, s.after, s.blow.pause, s.running)
}

// arguments are what datawait is called with, the training behind.
func (s *scene) arguments(out, train, account, model string) []string {
	args := []string{s.command, "-q", "--format", "json", "--out", out, "--interval", "20ms"}
	if s.command == "diagnose" {
		args = append(args, "--throwaway")
		if len(s.more) == 0 {
			args = append(args, "--duration", diagnosed.String())
		}
	}
	args = append(append(append(args, s.more...), "--"), s.around...)
	args = append(args, python(), train, s.loader, "--account", account, "--save", model,
		"--seconds", decimal(s.seconds), "--build", decimal(s.build), "--compute", decimal(s.compute),
		"--workers", strconv.Itoa(s.workers), "--length", strconv.Itoa(s.length))
	if s.gpu {
		args = append(args, "--gpu")
	}
	if s.replace {
		args = append(args, "--replace")
	}
	if s.epochs > 0 {
		args = append(args, "--epochs", strconv.Itoa(s.epochs))
	}
	return args
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }

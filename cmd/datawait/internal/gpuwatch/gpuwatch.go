// Package gpuwatch keeps the GPU part of an agent: a source of counters in a child process, once there is something to read.
//
// It decides when the child is started and with which arguments; what the child reads is decided by gpusource, and how it is kept
// running by probe/gpu/child.
package gpuwatch

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/child"
	"github.com/datawait/datawait/probe/recording"
)

// Command is the hidden command in which datawait, run again as a child, reads GPU counters.
const Command = "gpu-child"

const noGPU = "no GPU was watched: there is no sign of NVIDIA's driver here, and the job used no emulated device (--gpu dcgm=HOST:5555 reaches an engine elsewhere, --gpu scrape=URL a dcgm-exporter)"

const noDevice = "no GPU was watched: --gpu emulated reads a device that the script makes itself (gpu = datawait.emulated.Gpu()), and this one made none"

// silence after which a child is taken for hung, beyond its interval. It speaks after each poll, which may be 10 s off, and waits in it for
// an engine (8 s) and a driver (3 s) that hang.
const silence = 40 * time.Second

// Watch is the GPU part of an agent.
type Watch struct {
	wanted gpusource.Choice
	spool  string
	own    bool
	config child.Config
	child  *child.Child // nil until started
}

// Options say what to watch.
type Options struct {
	GPU         gpusource.Choice
	Interval    time.Duration         // of a window
	Dir         string                // where busy logs of emulated devices appear
	Declaration recording.Declaration // of the agent, for the stream that tells of a child's death
	Since       uint64                // CLOCK_MONOTONIC, ns: no window begins before
	Own         bool                  // no other datawait is asked for samples
}

// New returns a Watch that has started nothing yet.
func New(o Options) *Watch {
	w := &Watch{wanted: o.GPU, spool: o.Dir, own: o.Own}
	w.config = child.Config{Declaration: o.Declaration, Silence: silence + o.Interval, Command: func() *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd := exec.Command(self, Command, "--gpu", o.GPU.String(), "--dir", o.Dir, "--interval", o.Interval.String(),
			"--since", strconv.FormatUint(o.Since, 10), "--own="+strconv.FormatBool(o.Own))
		cmd.Env = gpu.LazyEnvironment()
		return cmd
	}}
	return w
}

// Poll starts the child as soon as it has something to read, and hands on what it sent.
func (w *Watch) Poll(ctx context.Context, sink recording.Sink) error {
	if w.child == nil {
		if !w.wanted.Due(gpusource.Options{Dir: w.spool, Own: w.own}) {
			return nil
		}
		w.child = child.Start(ctx, w.config)
	}
	return w.child.Poll(sink)
}

// Finish ends the child and hands on what it sent last.
func (w *Watch) Finish(sink recording.Sink) error {
	if w.child == nil {
		return nil
	}
	w.child.Stop()
	return w.child.Poll(sink)
}

// Warning says why no GPU was watched although one was wanted, "" otherwise. What a child that was started says itself is in the recording.
func (w *Watch) Warning() string {
	switch {
	case w.child != nil && w.wanted.Kind == gpusource.Emulated && !w.wanted.Made(w.spool):
		return noDevice
	case w.child == nil && w.wanted.Kind != gpusource.None:
		return noGPU
	}
	return ""
}

// State says how the child does; ok is false while there is none.
func (w *Watch) State() (state child.State, ok bool) {
	if w.child == nil {
		return state, false
	}
	return w.child.State(), true
}

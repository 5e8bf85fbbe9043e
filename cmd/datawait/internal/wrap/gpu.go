package wrap

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/datawait/datawait/probe/gpu/child"
	"github.com/datawait/datawait/probe/recording"
)

// GPUChildCommand is the hidden command in which datawait, run again as a child, reads GPU counters.
const GPUChildCommand = "gpu-child"

const noGPUSource = "no GPU was watched: this build reads only the emulated device, and the job did not use it"

// gpuWatch is the GPU part of an agent: a source in a child process, once there is something to read.
type gpuWatch struct {
	wanted string // GPUAuto, GPUEmulated or GPUNone
	spool  string
	config child.Config
	child  *child.Child // nil until started
}

func newGPUWatch(o Options, spool string, d recording.Declaration, since uint64) *gpuWatch {
	w := &gpuWatch{wanted: o.GPU, spool: spool}
	w.config = child.Config{Declaration: d, Command: func() *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		return exec.Command(self, GPUChildCommand, "--dir", spool, "--interval", o.Interval.String(),
			"--since", strconv.FormatUint(since, 10))
	}}
	return w
}

// poll starts the child as soon as it has something to read, and hands on what it sent.
func (w *gpuWatch) poll(ctx context.Context, sink recording.Sink) error {
	if w.child == nil {
		if w.wanted == GPUNone || w.wanted == GPUAuto && !w.hasLog() {
			return nil
		}
		w.child = child.Start(ctx, w.config)
	}
	return w.child.Poll(sink)
}

// hasLog reports whether the job made an emulated device.
func (w *gpuWatch) hasLog() bool {
	logs, _ := filepath.Glob(filepath.Join(w.spool, "gpu-*.busy"))
	return len(logs) > 0
}

// finish ends the child and hands on what it sent last.
func (w *gpuWatch) finish(sink recording.Sink) error {
	if w.child == nil {
		return nil
	}
	w.child.Stop()
	return w.child.Poll(sink)
}

// warning says why no GPU was watched although one was wanted, "" otherwise.
func (w *gpuWatch) warning() string {
	if w.child == nil && w.wanted != GPUNone {
		return noGPUSource
	}
	return ""
}

package wrap

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

// GPUChildCommand is the hidden command in which datawait, run again as a child, reads GPU counters.
const GPUChildCommand = "gpu-child"

const noGPU = "no GPU was watched: there is no sign of NVIDIA's driver here, and the job used no emulated device (--gpu dcgm=HOST:5555 reaches an engine elsewhere, --gpu scrape=URL a dcgm-exporter)"

const noDevice = "no GPU was watched: --gpu emulated reads a device that the script makes itself (gpu = datawait.emulated.Gpu()), and this one made none"

// silence after which a child is taken for hung, beyond its interval. It speaks after each poll, which may be 10 s off, and waits in it for
// an engine (8 s) and a driver (3 s) that hang.
const silence = 40 * time.Second

// gpuWatch is the GPU part of an agent: a source in a child process, once there is something to read.
type gpuWatch struct {
	wanted gpusource.Choice
	spool  string
	config child.Config
	child  *child.Child // nil until started
}

func newGPUWatch(o Options, spool string, d recording.Declaration, since uint64) *gpuWatch {
	w := &gpuWatch{wanted: o.GPU, spool: spool}
	w.config = child.Config{Declaration: d, Silence: silence + o.Interval, Command: func() *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd := exec.Command(self, GPUChildCommand, "--gpu", o.GPU.String(), "--dir", spool, "--interval", o.Interval.String(),
			"--since", strconv.FormatUint(since, 10))
		cmd.Env = gpu.LazyEnvironment()
		return cmd
	}}
	return w
}

// poll starts the child as soon as it has something to read, and hands on what it sent.
func (w *gpuWatch) poll(ctx context.Context, sink recording.Sink) error {
	if w.child == nil {
		if !w.wanted.Due(w.spool) {
			return nil
		}
		w.child = child.Start(ctx, w.config)
	}
	return w.child.Poll(sink)
}

// finish ends the child and hands on what it sent last.
func (w *gpuWatch) finish(sink recording.Sink) error {
	if w.child == nil {
		return nil
	}
	w.child.Stop()
	return w.child.Poll(sink)
}

// warning says why no GPU was watched although one was wanted, "" otherwise. What a child that was started says itself is in the recording.
func (w *gpuWatch) warning() string {
	switch {
	case w.child != nil && w.wanted.Kind == gpusource.Emulated && !w.wanted.Made(w.spool):
		return noDevice
	case w.child == nil && w.wanted.Kind != gpusource.None:
		return noGPU
	}
	return ""
}

// Package gpusource turns what --gpu says into the source that is sampled: the ladder of sources, best first, and what stands beside.
//
// It decides which source is tried and in what order; which one has a GPU's counters is found out by gpu.Choose, GPU by GPU.
package gpusource

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/gpu/dcgm"
	"github.com/datawait/datawait/probe/gpu/emulated"
	"github.com/datawait/datawait/probe/gpu/nvml"
	"github.com/datawait/datawait/probe/gpu/scrape"
	"github.com/datawait/datawait/probe/gpu/served"
)

// Kinds of sources, as --gpu has them.
const (
	Auto         = "auto"          // the best there is, GPU by GPU
	Emulated     = "emulated"      // the device of datawait.emulated
	DCGM         = "dcgm"          // a host engine that runs, at an address or where one usually listens
	DCGMEmbedded = "dcgm-embedded" // a host engine in datawait's own process
	Scrape       = "scrape"        // the page of a dcgm-exporter, at an address or this machine's own
	NVML         = "nvml"          // counters of Hopper and newer; elsewhere GPU-util only
	None         = "none"
)

// Help lists what --gpu takes, for people.
const Help = "auto, dcgm, dcgm=ADDRESS, dcgm-embedded, nvml, scrape, scrape=URL, emulated or none"

// Kinds are the words of --gpu.
func Kinds() []string { return []string{Auto, DCGM, DCGMEmbedded, NVML, Scrape, Emulated, None} }

// Built lists the sources this build has: NVIDIA's bindings need cgo.
func Built() []string {
	if dcgm.Built && nvml.Built {
		return []string{DCGM, NVML, Scrape, Emulated}
	}
	return []string{Scrape, Emulated}
}

// Choice is a value of --gpu.
type Choice struct {
	Kind    string
	Address string // of a host engine, host:port or the path of its socket, or the URL of an exporter's page; "" = the usual ones
}

// Parse reads a value of --gpu.
func Parse(text string) (Choice, error) {
	kind, address, given := strings.Cut(text, "=")
	if !slices.Contains(Kinds(), kind) {
		return Choice{}, fmt.Errorf("there is no GPU source %q", kind)
	}
	if given && kind != DCGM && kind != Scrape {
		return Choice{}, fmt.Errorf("the GPU source %s takes no address", kind)
	}
	if given && address == "" {
		return Choice{}, fmt.Errorf("the address after %s= is empty", kind)
	}
	if given && kind == Scrape {
		var err error
		if address, err = scrape.Address(address); err != nil {
			return Choice{}, err
		}
	}
	return Choice{kind, address}, nil
}

// String returns the value that Parse reads.
func (c Choice) String() string {
	if c.Address == "" {
		return c.Kind
	}
	return c.Kind + "=" + c.Address
}

// Options of the sources.
type Options struct {
	Dir      string        // where busy logs of emulated devices appear
	Since    uint64        // CLOCK_MONOTONIC ns: no window of theirs begins before
	Interval time.Duration // of a window
	Own      bool          // no other datawait is asked: this one has the counters
}

// Sockets are where a datawait that is left running may offer its GPU samples: where one is told, else where root's agent has it, the one
// of examples/systemd, and the user's own.
func Sockets(getenv func(string) string) []string {
	if told := getenv("DATAWAIT_GPU_SOCKET"); told != "" {
		return []string{told}
	}
	all := []string{"/run/datawait/gpu.sock", "/run/datawait-agent/gpu.sock"}
	if own := getenv("XDG_RUNTIME_DIR"); own != "" {
		all = append(all, filepath.Join(own, "datawait", "gpu.sock"))
	}
	return all
}

// Served returns a connection to the datawait that has the counters of this machine, nil where there is none or the choice is another:
// rung 0 of the ladder. Where a job made an emulated device, that is meant.
func (c Choice) Served(o Options) net.Conn {
	if o.Own || c.Kind != Auto || c.Made(o.Dir) {
		return nil
	}
	for _, socket := range Sockets(os.Getenv) {
		if conn, err := served.Dial(socket); err == nil {
			return conn
		}
	}
	return nil
}

// Due reports whether there is something to sample: whatever was asked for by name, else an emulated device or signs of NVIDIA's driver. For
// one that asks no other, logs in a folder that is open to all are no sign, nor is its own socket.
func (c Choice) Due(o Options) bool {
	switch c.Kind {
	case None:
		return false
	case Auto:
		return driver() || !o.Own && (c.Made(o.Dir) || offered())
	}
	return true
}

// Made reports whether a job has made an emulated device.
func (c Choice) Made(dir string) bool {
	logs, _ := filepath.Glob(filepath.Join(dir, "gpu-*.busy"))
	return len(logs) > 0
}

// offered reports whether some datawait offers samples: a training pod sees its socket, and no driver.
func offered() bool {
	return slices.ContainsFunc(Sockets(os.Getenv), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode()&os.ModeSocket != 0
	})
}

// signs are files that NVIDIA's driver brings; one is enough.
var signs = []string{"/dev/nvidiactl", "/proc/driver/nvidia/version"}

func driver() bool {
	for _, path := range signs {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// Open opens the sources of the choice. The duration is how often they should be sampled: asking a host engine costs one request per
// GPU and field, and it keeps what is not asked for yet.
func (c Choice) Open(ctx context.Context, o Options) (*gpu.Choice, time.Duration, error) {
	ladder, beside := c.candidates(o)
	source, err := gpu.Choose(ctx, ladder, beside...)
	if err != nil {
		return nil, 0, err
	}
	poll := max(o.Interval, 200*time.Millisecond)
	if strings.Contains(source.Name(), dcgm.Name) {
		poll = dcgm.Pause(max(o.Interval, dcgm.Shortest))
	} else if strings.Contains(source.Name(), nvml.StatesName) || strings.Contains(source.Name(), scrape.Name) {
		poll = max(o.Interval, time.Second)
	}
	return source, poll, nil
}

// patience with a call into the driver: a child that says nothing for long is taken for dead.
const patience = 3 * time.Second

func (c Choice) candidates(o Options) (ladder, beside []gpu.Candidate) {
	logs := gpu.Candidate{Name: Emulated, Open: func(context.Context) (gpu.Source, error) {
		return source(emulated.Open(emulated.Options{Dir: o.Dir, Since: o.Since, Interval: o.Interval}))
	}}
	engine := gpu.Candidate{Name: dcgm.Name, Open: func(ctx context.Context) (gpu.Source, error) {
		return source(dcgm.Open(ctx, dcgm.Options{Address: c.Address, Embedded: c.Kind == DCGMEmbedded, Interval: max(o.Interval, dcgm.Shortest)}))
	}}
	gpm := gpu.Candidate{Name: nvml.GPMName, Open: func(ctx context.Context) (gpu.Source, error) {
		return source(nvml.OpenGPM(ctx, nvml.Options{Interval: o.Interval}))
	}}
	states := gpu.Candidate{Name: nvml.StatesName, Open: func(ctx context.Context) (gpu.Source, error) {
		s, err := source(nvml.OpenStates(ctx))
		if err != nil {
			return nil, err
		}
		return gpu.Patient(s, patience), nil
	}}
	page := gpu.Candidate{Name: scrape.Name, Last: true, Open: func(ctx context.Context) (gpu.Source, error) {
		return source(scrape.Open(ctx, scrape.Options{URL: c.Address, Partly: c.Kind == Scrape}))
	}}
	switch c.Kind {
	case Emulated:
		return []gpu.Candidate{logs}, nil
	case DCGM, DCGMEmbedded:
		return []gpu.Candidate{engine}, []gpu.Candidate{states}
	case NVML:
		return []gpu.Candidate{gpm}, []gpu.Candidate{states}
	case Scrape:
		if !driver() { // the exporter may be another machine's
			return []gpu.Candidate{page}, nil
		}
		return []gpu.Candidate{page}, []gpu.Candidate{states}
	case Auto:
		if o.Own { // whoever writes a log into the spool of all must not take the place of the machine's counters
			return []gpu.Candidate{engine, gpm, page}, []gpu.Candidate{states}
		}
		if !driver() { // asking would only bring reasons that nobody wants to read
			return []gpu.Candidate{logs}, nil
		}
		return []gpu.Candidate{logs, engine, gpm, page}, []gpu.Candidate{states}
	}
	return nil, nil
}

// source turns a typed result into a Source: a nil of a type is no nil Source.
func source[S gpu.Source](s S, err error) (gpu.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

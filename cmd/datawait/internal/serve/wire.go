package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/gpuwatch"
	"github.com/datawait/datawait/probe/alloc"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu/scrape"
	"github.com/datawait/datawait/probe/recording"
)

// wire is the sink for all that the agent and its GPU child tell. It passes everything to the books, what is of GPUs to whoever listens on the
// socket, and looks at what the child says of itself. What the agent saw of the machine and of everybody's processes is for the books alone:
// whoever listens sees to that itself, and may see no others' processes.
type wire struct {
	books recording.Sink
	hub   recording.Sink
	hubID map[recording.StreamID]recording.StreamID
	own   recording.StreamID // of the agent itself; 0 = not yet
	child recording.StreamID // of the child that runs; 0 before the first
	seen  alloc.Seen
	gpu   gpuHealth
	pods  pods
}

func newWire(books, hub recording.Sink, p pods) *wire {
	return &wire{books: books, hub: hub, pods: p, hubID: map[recording.StreamID]recording.StreamID{}, seen: alloc.NewSeen()}
}

// Declare introduces a stream. A child that was started anew begins anew: of the one before nothing more will come.
func (w *wire) Declare(d recording.Declaration) (recording.StreamID, error) {
	id, err := w.books.Declare(d)
	if err != nil {
		return id, err
	}
	if w.own == 0 {
		w.own = id
	}
	w.hubID[id], err = w.hub.Declare(d)
	if d.PID != os.Getpid() {
		if w.child != 0 {
			w.End(w.child)
		}
		w.child, w.seen = id, alloc.NewSeen()
		w.gpu = gpuHealth{began: clock.Mono(), rss: recording.Unknown64, gpus: whys{}}
	}
	return id, err
}

// Records passes records on.
func (w *wire) Records(id recording.StreamID, records []recording.Record) error {
	for i := range records {
		switch r := &records[i]; {
		case r.Kind() == recording.KindGPU:
			w.gpu.begin, w.gpu.window = r.Times()
		case r.Kind() == recording.KindGPUProcess:
			w.seen.Process(id, r.GPUProcess())
		case r.Kind() == recording.KindSource && id == w.child:
			w.gpu.take(r.Source())
		}
	}
	err := w.books.Records(id, records)
	if id != w.own {
		err = errors.Join(err, w.hub.Records(w.hubID[id], records))
	}
	return err
}

// Note passes a note on.
func (w *wire) Note(id recording.StreamID, raw json.RawMessage) error {
	w.seen.Note(id, raw)
	var told recording.Notes
	told.Add(raw)
	for _, n := range told.Allocations {
		w.pods.told(n)
	}
	if id == w.child {
		for _, n := range told.DeviceNames {
			if n.Class == recording.ClassSource {
				w.gpu.why = n.Why
			}
		}
		for _, g := range told.GPUs {
			w.gpu.gpus[g.GPU] = g.Why
			w.gpu.second = w.gpu.second || strings.Contains(g.Source, scrape.Name)
		}
	}
	err := w.books.Note(id, raw)
	if id != w.own || len(told.Allocations) > 0 {
		err = errors.Join(err, w.hub.Note(w.hubID[id], raw))
	}
	return err
}

// End ends a stream.
func (w *wire) End(id recording.StreamID) {
	if e, ok := w.books.(recording.Ender); ok {
		e.End(id)
	}
	if e, ok := w.hub.(recording.Ender); ok {
		e.End(w.hubID[id])
	}
	delete(w.hubID, id)
}

// gpuHealth is what a GPU child says of itself.
type gpuHealth struct {
	began  uint64 // ns, when its stream was declared
	at     uint64 // ns, end of its newest report; 0 = none came
	begin  uint64 // ns, of the newest counter window
	window uint64 // ns, its end; 0 = none came
	second bool   // counters are at second hand: an exporter collects them when it likes
	up     bool
	why    string
	cpu    float64 // s, so far
	rss    uint64  // bytes; Unknown64 = not known
	gpus   whys
}

// whys is why GPUs give nothing, or no more than they do, by what the child calls them.
type whys map[uint16]string

func (h *gpuHealth) take(s recording.Source) {
	h.at, h.up = s.End, s.Flags&recording.SourceSuccess != 0
	if s.CPU == s.CPU && s.End > s.Begin {
		h.cpu += float64(s.CPU) * float64(s.End-s.Begin) / 1e9
	}
	h.rss = s.RSS
}

// silent is how long a child may say nothing: it speaks after each poll, and gpuwatch kills one that hangs.
const silent = 45 * time.Second

// problem says why no counters come, nil if they do.
func (h *gpuHealth) problem(w *gpuwatch.Watch, o Options) error {
	state, started := w.State()
	switch {
	case !started && o.GPU.Kind == gpusource.Auto:
		return errors.New(w.Warning())
	case state.PID == 0 && state.Why != "":
		return errors.New(state.Why)
	case h.at == 0:
		return errors.New("the GPU child has told nothing yet")
	case clock.Mono()-h.at > uint64(silent+o.Interval):
		return errors.New("the GPU child has told nothing for too long")
	case !h.up && h.why != "":
		return errors.New(h.why)
	case !h.up:
		return errors.New("the GPU source failed and does not say why")
	case len(h.gpus) > 0 && clock.Mono()-max(h.began, h.window) > h.patience(o):
		return fmt.Errorf("no counters come%s", h.gpus)
	}
	return nil
}

// patience is for how long, in ns, no window need come. An exporter's have to have changed twice before there is one, and are as long as
// it likes: half a minute where nobody chose.
func (h *gpuHealth) patience(o Options) uint64 {
	quiet := uint64(silent + o.Interval)
	if h.second {
		quiet = max(quiet, uint64(100*time.Second), 2*(h.window-h.begin))
	}
	return quiet
}

// String lists why, each reason once.
func (w whys) String() (text string) {
	for _, why := range slices.Compact(slices.Sorted(maps.Values(w))) {
		if why != "" {
			text += ": " + why
		}
	}
	return text
}

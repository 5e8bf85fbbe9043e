package wrap

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/probe/alloc"
	"github.com/datawait/datawait/probe/recording"
)

// holders is the part of an agent that finds out to whom the GPUs are assigned.
type holders struct {
	watch *alloc.Watch // nil until started, and where no GPU is wanted
	why   string       // what the last look could not tell, "" = it told all it was asked
}

// findHolders hands on what GPU sources have told, and writes what was found out.
func (a *agent) findHolders(_ context.Context, now uint64) error {
	if a.holders.watch == nil {
		return nil
	}
	if view, changed := a.tap.gpus.view(); changed {
		a.holders.watch.See(view)
	}
	err := a.holders.watch.Poll(now, a.own)
	a.holders.why = ""
	if err != nil {
		a.holders.why = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return err
}

func (a *agent) watchHolders(ctx context.Context) {
	if a.session.options.GPU.Kind != gpusource.None {
		a.holders.watch = alloc.Start(ctx, alloc.Options{})
	}
}

// warning is a sentence for the report, "" where nobody was asked in vain or there is no GPU to be held.
func (h *holders) warning(seen *gpusSeen) string {
	if h.why == "" || !seen.real() {
		return ""
	}
	return "whom the GPUs are assigned to is not known, or not of all: " + h.why
}

// gpusSeen is what GPU sources have told on their way to the recording.
type gpusSeen struct {
	notes   map[gpuKey]recording.GPUNote
	looks   map[gpuKey]processLook
	changed bool
}

// gpuKey is a GPU as one stream calls it.
type gpuKey struct {
	stream recording.StreamID
	ref    uint16
}

// processLook is the processes on a GPU as they were listed last.
type processLook struct {
	at   uint64 // ns
	pids []int
}

// Bounds of what is remembered of a source.
const (
	mostGPUs = 1024
	mostPIDs = 1024
)

func newGPUsSeen() gpusSeen {
	return gpusSeen{notes: map[gpuKey]recording.GPUNote{}, looks: map[gpuKey]processLook{}}
}

// gpuNote is how a note of a GPU begins (recording.EncodeNote puts its name first).
var gpuNote = []byte(`{"note":"gpu",`)

func (s *gpusSeen) note(id recording.StreamID, raw json.RawMessage) {
	var n recording.GPUNote
	if !bytes.HasPrefix(raw, gpuNote) || json.Unmarshal(raw, &n) != nil || len(s.notes) >= mostGPUs {
		return
	}
	if key := (gpuKey{id, n.GPU}); s.notes[key] != n {
		s.notes[key] = n
		s.changed = true
	}
}

func (s *gpusSeen) process(id recording.StreamID, p recording.GPUProcess) {
	key := gpuKey{id, p.Ref}
	look := s.looks[key]
	if look.at != p.End {
		look = processLook{at: p.End}
	}
	if len(look.pids) < mostPIDs && p.PID < 1<<31 {
		look.pids = append(look.pids, int(p.PID))
	}
	s.looks[key] = look
	s.changed = true
}

// real reports whether a GPU was seen that is not emulated.
func (s *gpusSeen) real() bool {
	for _, n := range s.notes {
		if !n.Emulated {
			return true
		}
	}
	return false
}

// view returns what was seen, and whether that is news.
func (s *gpusSeen) view() (v alloc.View, changed bool) {
	if !s.changed {
		return v, false
	}
	s.changed = false
	v.Running = map[string][]int{}
	at := map[string]uint64{}
	for key, n := range s.notes {
		v.GPUs = append(v.GPUs, n)
		// a child that was started again is another stream, which tells of the same GPUs
		if look, ok := s.looks[key]; ok && n.UUID != "" && look.at >= at[n.UUID] {
			v.Running[n.UUID], at[n.UUID] = look.pids, look.at
		}
	}
	return v, true
}

package alloc

import (
	"bytes"
	"encoding/json"

	"github.com/datawait/datawait/probe/recording"
)

// Seen is what GPU sources have told, gathered on its way to wherever it goes.
type Seen struct {
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

// NewSeen returns a Seen that has seen nothing.
func NewSeen() Seen {
	return Seen{notes: map[gpuKey]recording.GPUNote{}, looks: map[gpuKey]processLook{}}
}

// gpuNote is how a note of a GPU begins (recording.EncodeNote puts its name first).
var gpuNote = []byte(`{"note":"gpu",`)

// Note takes a note of a stream.
func (s *Seen) Note(id recording.StreamID, raw json.RawMessage) {
	var n recording.GPUNote
	if !bytes.HasPrefix(raw, gpuNote) || json.Unmarshal(raw, &n) != nil || len(s.notes) >= mostGPUs {
		return
	}
	if key := (gpuKey{id, n.GPU}); s.notes[key] != n {
		s.notes[key] = n
		s.changed = true
	}
}

// Process takes a process that was listed on a GPU.
func (s *Seen) Process(id recording.StreamID, p recording.GPUProcess) {
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

// Real reports whether a GPU was seen that is not emulated.
func (s *Seen) Real() bool {
	for _, n := range s.notes {
		if !n.Emulated {
			return true
		}
	}
	return false
}

// View returns what was seen, and whether that is news.
func (s *Seen) View() (v View, changed bool) {
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

package shelf

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/recording"
)

// TestNotesOfAnAgentAreBounded: an agent tells for months why a source fails. What it said last of each is remembered, though what was
// said in all is more than may be.
func TestNotesOfAnAgentAreBounded(t *testing.T) {
	node := live.New(live.Options{})
	s := New(Options{Dir: t.TempDir()}, node)
	agent := s.Over(node.Agent(), nil)
	id, err := agent.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	if err != nil {
		t.Fatal(err)
	}
	const sources, times = 300, 20
	long := strings.Repeat("x", 1000)
	for n := range times {
		for ref := range uint16(sources) {
			if err := agent.Note(id, recording.EncodeNote(recording.DeviceNameNote{Class: recording.ClassSource, Ref: ref, Name: "limits", Why: fmt.Sprint(n, long)})); err != nil {
				t.Fatal(err)
			}
		}
	}
	st := s.streams[id]
	last := map[uint16]string{}
	for _, raw := range st.notes {
		var n recording.DeviceNameNote
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Fatal(err)
		}
		last[n.Ref] = n.Why
	}
	for ref := range uint16(sources) {
		if want := fmt.Sprint(times-1, long); last[ref] != want {
			t.Fatalf("of source %d it is remembered that %.10q…, not %.10q…", ref, last[ref], want)
		}
	}
	if st.bytes > mostNotes || len(st.notes) > 2*sources {
		t.Errorf("%d notes of %d bytes are remembered", len(st.notes), st.bytes)
	}
}

package recording

import (
	"errors"
	"testing"
)

var _ Sink = (*Memory)(nil)
var _ Reader = (*Memory)(nil)

// whole returns a numbered record of a kind this version does not know.
func unknownKind(seq uint32) (r Record) {
	r.head(200, 0, 0)
	r.SetSeq(seq)
	return r
}

func TestMemoryGivesBackWhatWasWritten(t *testing.T) {
	m := NewMemory(Manifest{Host: "a"})
	id, _ := m.Declare(Declaration{Producer: ProducerMain, PID: 7})
	m.Add(id, Fetch{Enter: 10, Exit: 20}.Encode(), Step{Begin: 30, End: 40, Step: 1}.Encode())
	m.AddNote(id, ClockNote{Monotonic: 5, Realtime: 6})

	var kinds []Kind
	var seqs []uint32
	err := m.Scan(func(got StreamID, records []Record) error {
		for i := range records {
			kinds = append(kinds, records[i].Kind())
			seqs = append(seqs, records[i].Seq())
		}
		return nil
	})
	if err != nil || len(kinds) != 2 || kinds[0] != KindFetch || kinds[1] != KindStep || seqs[0] != 1 || seqs[1] != 2 {
		t.Fatalf("Scan gave %v %v, %v", kinds, seqs, err)
	}
	s := m.Streams()[0]
	if s.Declaration.PID != 7 || len(s.Notes.Clocks) != 1 || s.Notes.Clocks[0].Realtime != 6 {
		t.Errorf("stream is %+v", s)
	}
	if !m.Damage().Clean() {
		t.Errorf("damage: %v", m.Damage())
	}
}

func TestAStreamPassesRunsOfGoodRecords(t *testing.T) {
	m := NewMemory(Manifest{})
	id, _ := m.Declare(Declaration{})
	other, _ := m.Declare(Declaration{})
	good := Mark{Begin: 1}.Encode()
	good.SetSeq(1)
	torn := good
	torn[60]++
	block := []Record{torn, good, good, unknownKind(3), good, {}}
	if err := errors.Join(m.Records(id, block), m.Records(other, block)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var runs []int
		d, err := m.Stream(id, func(r []Record) error { runs = append(runs, len(r)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != 2 || runs[0] != 2 || runs[1] != 1 {
			t.Errorf("runs %v, want [2 1]", runs)
		}
		if d != (Damage{Torn: 2, UnknownKinds: 1}) {
			t.Errorf("damage %v", d)
		}
	}
	stop := errors.New("stop")
	if _, err := m.Stream(id, func([]Record) error { return stop }); err != stop {
		t.Errorf("Stream returned %v, want the visitor's error", err)
	}
}

func TestWritingAnUndeclaredStreamFails(t *testing.T) {
	m := NewMemory(Manifest{})
	for _, id := range []StreamID{0, 1} {
		if m.Records(id, nil) == nil || m.Note(id, nil) == nil {
			t.Errorf("stream %d was accepted", id)
		}
	}
}

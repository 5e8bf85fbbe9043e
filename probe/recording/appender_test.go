package recording

import (
	"errors"
	"testing"
)

func TestAppenderNumbersRecordsOfItsStream(t *testing.T) {
	m := NewMemory(Manifest{})
	id, err := m.Declare(Declaration{Producer: ProducerAgent})
	if err != nil {
		t.Fatal(err)
	}
	a := NewAppender(m, id)
	if err := a.Append(Machine{Begin: 1, End: 2}.Encode(), Pressure{Begin: 1, End: 2}.Encode()); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(Source{Begin: 2, End: 3}.Encode()); err != nil {
		t.Fatal(err)
	}
	var got []uint32
	if err := m.Scan(func(_ StreamID, records []Record) error {
		for i := range records {
			got = append(got, records[i].Seq())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("sequence numbers %v, want 1 2 3", got)
	}
}

type refusingSink struct {
	Sink
	refuse bool
}

func (s *refusingSink) Records(id StreamID, r []Record) error {
	if s.refuse {
		return errors.New("disk full")
	}
	return s.Sink.Records(id, r)
}

func TestAppenderLeavesNoGapWhereTheSinkRefused(t *testing.T) {
	m := NewMemory(Manifest{})
	id, _ := m.Declare(Declaration{Producer: ProducerAgent})
	s := &refusingSink{Sink: m, refuse: true}
	a := NewAppender(s, id)
	if err := a.Append(Source{}.Encode()); err == nil {
		t.Fatal("the sink's error was swallowed")
	}
	s.refuse = false
	if err := a.Append(Source{}.Encode()); err != nil {
		t.Fatal(err)
	}
	if err := m.Scan(func(_ StreamID, records []Record) error {
		if len(records) != 1 || records[0].Seq() != 1 {
			t.Errorf("got %d records, first seq %d", len(records), records[0].Seq())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

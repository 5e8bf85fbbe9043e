package recording

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Memory is a recording that lives in memory: a [Sink] to write and a [Reader] to read. Tests of analysis build tiny
// recordings with it; nothing is dropped or reordered.
type Memory struct {
	manifest Manifest
	streams  []Stream
	blocks   []memoryBlock
	next     []uint32 // by stream: the sequence number Add gives next
}

type memoryBlock struct {
	id      StreamID
	records []Record
}

// NewMemory returns an empty recording.
func NewMemory(m Manifest) *Memory { return &Memory{manifest: m} }

// Declare introduces a stream; numbers start at 1.
func (m *Memory) Declare(d Declaration) (StreamID, error) {
	id := StreamID(len(m.streams) + 1)
	m.streams = append(m.streams, Stream{ID: id, Declaration: d})
	m.next = append(m.next, 1)
	return id, nil
}

// Records keeps a copy of the records as they are, sequence numbers included.
func (m *Memory) Records(id StreamID, records []Record) error {
	if err := m.declared(id); err != nil {
		return err
	}
	m.blocks = append(m.blocks, memoryBlock{id, slices.Clone(records)})
	return nil
}

// Note decodes and keeps one note.
func (m *Memory) Note(id StreamID, note json.RawMessage) error {
	if err := m.declared(id); err != nil {
		return err
	}
	m.streams[id-1].Notes.Add(note)
	return nil
}

// Add numbers freshly encoded records and keeps them; it panics on a stream that was not declared. For tests:
//
//	m.Add(id, Fetch{Enter: 10, Exit: 20}.Encode(), Step{Begin: 30, End: 40}.Encode())
func (m *Memory) Add(id StreamID, records ...Record) {
	for i := range records {
		records[i].SetSeq(m.next[id-1])
		m.next[id-1]++
	}
	if err := m.Records(id, records); err != nil {
		panic(err)
	}
}

// AddNote keeps one typed note; it panics on a stream that was not declared.
func (m *Memory) AddNote(id StreamID, note Note) {
	if err := m.Note(id, EncodeNote(note)); err != nil {
		panic(err)
	}
}

func (m *Memory) declared(id StreamID) error {
	if id == 0 || int(id) > len(m.streams) {
		return fmt.Errorf("writing stream %d: not declared", id)
	}
	return nil
}

// Manifest returns what NewMemory was given.
func (m *Memory) Manifest() Manifest { return m.manifest }

// SetManifest replaces the manifest.
func (m *Memory) SetManifest(manifest Manifest) { m.manifest = manifest }

// Streams returns the declared streams with their notes.
func (m *Memory) Streams() []Stream { return m.streams }

// Scan visits the records of all streams, whole or not, in the order they were written.
func (m *Memory) Scan(visit func(StreamID, []Record) error) error {
	for _, b := range m.blocks {
		if err := visit(b.id, b.records); err != nil {
			return err
		}
	}
	return nil
}

// Stream visits the records of one stream.
func (m *Memory) Stream(id StreamID, visit func([]Record) error) (d Damage, err error) {
	for _, b := range m.blocks {
		if b.id != id {
			continue
		}
		if err := visitWhole(b.records, &d, visit); err != nil {
			return d, err
		}
	}
	return d, nil
}

// Damage counts what the notes tell.
func (m *Memory) Damage() Damage { return noteDamage(m.streams) }

// noteDamage sums what the notes of all streams say is missing.
func noteDamage(streams []Stream) (d Damage) {
	for i := range streams {
		n := &streams[i].Notes
		d.UnknownNotes += n.Unknown
		d.BadNotes += n.Bad
		for _, l := range n.Lost {
			d.Lost += l.Records
			d.Torn += l.Torn
		}
	}
	return d
}

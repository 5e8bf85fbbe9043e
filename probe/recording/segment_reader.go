// Reading the segments of one node (SPEC §6).
//
// Open reads declarations and notes and steps over the records, noting where those of each stream stand; Stream reads the records of
// one. Neither believes a number in the file before it is checked, and neither holds more than one frame, so a stream of any
// size needs the same memory.

package recording

import (
	"errors"
	"fmt"
	"io"
)

const (
	maxDeclaration = RingMaxNotes // bytes; a ring cannot hold a longer one
	maxStreams     = 1 << 20
	maxKept        = 128 << 20 // bytes of declarations and notes of one node
)

// segments reads a node's folder of segments.
type segments struct {
	manifest Manifest
	parts    []segmentPart
	streams  []Stream
	index    map[StreamID]int // position in streams
	kept     int              // bytes of declarations and notes
	found    Damage
}

// segmentPart is one segment, up to the length it had when it was opened: the agent may still be writing it.
type segmentPart struct {
	path   string
	size   int64
	frames frameIndex
}

func openSegments(m Manifest, paths []string) (*segments, error) {
	s := &segments{manifest: m, index: map[StreamID]int{}}
	frames := &frameReader{found: &s.found}
	for _, path := range paths {
		if err := s.indexFile(path, frames); err != nil {
			return nil, err
		}
	}
	return s, s.dropUndeclared()
}

// indexFile reads the declarations and notes of one segment. What is no segment at all is counted.
func (s *segments) indexFile(path string, frames *frameReader) error {
	f, err := OpenRegular(path)
	if err != nil {
		s.found.BadFiles++
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	frames.file.open(f, info.Size())
	if err := frames.header(); err != nil {
		if errors.Is(err, errNotSegment) {
			s.found.BadFiles++
			return nil
		}
		return fmt.Errorf("reading %s: %w", path, err)
	}
	s.parts = append(s.parts, segmentPart{path, info.Size(), frameIndex{}})
	for frames.next() {
		if err := s.indexFrame(frames); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	if frames.err != nil {
		return fmt.Errorf("reading %s: %w", path, frames.err)
	}
	return nil
}

func (s *segments) indexFrame(frames *frameReader) error {
	h := frames.frame
	switch h.Type {
	case FrameRecords:
		s.indexRecords(frames)
		return nil
	case FrameDeclaration, FrameNote:
	default:
		s.found.UnknownFrames++
		return nil
	}
	if s.kept+int(h.Length) > maxKept {
		s.found.DroppedNotes++
		return nil
	}
	body, ok, err := frames.body()
	if err != nil || !ok {
		return err
	}
	if h.Type == FrameDeclaration {
		s.declare(h.Stream, body)
	} else {
		s.note(h.Stream, body)
	}
	return nil
}

// indexRecords notes where a frame of records stands.
func (s *segments) indexRecords(frames *frameReader) {
	switch n := int(frames.frame.Length); {
	case n%Size != 0:
		s.found.BadFrames++
	case n > 0:
		s.parts[len(s.parts)-1].frames.add(frames.frame.Stream, frames.start, n/Size)
	}
}

// dropUndeclared counts the records of streams that nobody declared, not even later.
func (s *segments) dropUndeclared() error {
	for i := range s.parts {
		for id, run := range s.parts[i].frames {
			if _, declared := s.index[id]; declared {
				continue
			}
			delete(s.parts[i].frames, id)
			part := segmentPart{s.parts[i].path, s.parts[i].size, frameIndex{id: run}}
			err := part.read(id, &window{}, &s.found, func(records []Record) error {
				s.found.Undeclared += uint64(len(records))
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// declare keeps the first good declaration of a stream; the later ones repeat it.
func (s *segments) declare(id StreamID, body []byte) {
	if _, known := s.index[id]; known {
		return
	}
	d, err := parseDeclaration(body)
	if err != nil || id == 0 || len(body) > maxDeclaration {
		s.found.BadFrames++
		return
	}
	if len(s.streams) == maxStreams {
		s.found.DroppedNotes++
		return
	}
	s.index[id] = len(s.streams)
	s.streams = append(s.streams, Stream{ID: id, Declaration: d})
	s.kept += len(body)
}

func (s *segments) note(id StreamID, body []byte) {
	i, known := s.index[id]
	if !known {
		s.found.Undeclared++
		return
	}
	s.streams[i].Notes.Add(body)
	s.kept += len(body)
}

// Manifest returns the node's manifest, the zero one if the agent wrote none.
func (s *segments) Manifest() Manifest { return s.manifest }

// Streams returns the declared streams in the order of their numbers.
func (s *segments) Streams() []Stream { return s.streams }

// Damage counts what opening could not read, and what the notes say was lost.
func (s *segments) Damage() Damage { return s.found.Add(noteDamage(s.streams)) }

// Stream visits the records of one stream, segment by segment.
func (s *segments) Stream(id StreamID, visit func([]Record) error) (d Damage, err error) {
	var file window
	for i := range s.parts {
		err := s.parts[i].read(id, &file, &d, func(records []Record) error { return visitWhole(records, &d, visit) })
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// read visits the frames of one stream whose checksum is right, and counts the others.
func (p *segmentPart) read(id StreamID, file *window, d *Damage, visit func([]Record) error) error {
	run := p.frames[id]
	if run == nil {
		return nil
	}
	f, err := OpenRegular(p.path)
	if err != nil {
		return fmt.Errorf("reading recording: %w", err)
	}
	defer f.Close()
	file.open(f, p.size)
	run.each(func(at int64, records int) bool {
		err = readFrame(file, at, id, records, d, visit)
		return err == nil
	})
	return err
}

func readFrame(file *window, at int64, id StreamID, records int, d *Damage, visit func([]Record) error) error {
	b, err := file.view(at, FrameHeaderBytes+records*Size)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the file got shorter
		d.TornTails++
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading recording: %w", err)
	}
	h, body := ParseFrameHeader(b), b[FrameHeaderBytes:]
	if h.Type != FrameRecords || h.Stream != id || !h.Matches(body) {
		d.BadFrames++
		return nil
	}
	return visit(recordsOf(body))
}

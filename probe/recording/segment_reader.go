// Reading the segments of one node (SPEC §6).
//
// Open reads declarations and notes and steps over the records; Scan reads the records. Neither believes a number in the
// file before it is checked, and neither holds more than one frame, so a recording of any size needs the same memory.

package recording

import (
	"errors"
	"fmt"
)

const (
	indexAhead = 4 << 10   // read at once when stepping from frame to frame
	scanAhead  = 256 << 10 // read at once when reading records; fits the second-level cache

	maxDeclaration = RingMaxNotes // bytes; a ring cannot hold a longer one
	maxStreams     = 1 << 20
	maxKept        = 128 << 20 // bytes of declarations and notes of one node
)

// segments reads a node's folder of segments.
type segments struct {
	manifest Manifest
	files    []segmentPart
	streams  []Stream
	index    map[StreamID]int // position in streams
	kept     int              // bytes of declarations and notes
	found    Damage           // by the index
	scanned  Damage           // by the last scan
}

// segmentPart is one segment, up to the length it had when it was opened: the agent may still be writing it.
type segmentPart struct {
	path string
	size int64
}

func openSegments(m Manifest, paths []string) (*segments, error) {
	s := &segments{manifest: m, index: map[StreamID]int{}}
	for _, path := range paths {
		if err := s.indexFile(path); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// indexFile reads the declarations and notes of one segment. What is no segment at all is counted.
func (s *segments) indexFile(path string) error {
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
	frames := &frameReader{f: f, end: info.Size(), ahead: indexAhead, structure: &s.found, content: &s.found}
	if err := frames.header(); err != nil {
		if errors.Is(err, errNotSegment) {
			s.found.BadFiles++
			return nil
		}
		return fmt.Errorf("reading %s: %w", path, err)
	}
	s.files = append(s.files, segmentPart{path, info.Size()})
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
		return nil // read by Scan
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

// Damage counts what the index and the last scan could not read, and what the notes say was lost.
func (s *segments) Damage() Damage { return s.found.Add(s.scanned).Add(noteDamage(s.streams)) }

// Scan visits the records segment by segment.
func (s *segments) Scan(visit func(StreamID, []Record) error) error {
	s.scanned = Damage{}
	var buf []byte
	for _, part := range s.files {
		f, err := OpenRegular(part.path)
		if err != nil {
			return fmt.Errorf("scanning recording: %w", err)
		}
		frames := &frameReader{f: f, end: part.size, ahead: scanAhead, buf: buf, structure: &Damage{}, content: &s.scanned}
		err = s.scanFile(frames, visit)
		buf = frames.buf
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *segments) scanFile(frames *frameReader, visit func(StreamID, []Record) error) error {
	if err := frames.header(); err != nil {
		return fmt.Errorf("scanning recording: %w", err)
	}
	for frames.next() {
		if frames.frame.Type != FrameRecords {
			continue
		}
		body, ok, err := frames.recordBody()
		if err != nil {
			return fmt.Errorf("scanning recording: %w", err)
		}
		if !ok {
			continue
		}
		if _, declared := s.index[frames.frame.Stream]; !declared {
			s.scanned.Undeclared += uint64(len(body) / Size)
			continue
		}
		if err := visitWhole(frames.frame.Stream, recordsOf(body), &s.scanned, visit); err != nil {
			return err
		}
	}
	if frames.err != nil {
		return fmt.Errorf("scanning recording: %w", frames.err)
	}
	return nil
}

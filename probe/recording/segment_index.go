package recording

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	maxDeclaration = RingMaxNotes // bytes; a ring cannot hold a longer one
	maxStreams     = 1 << 20
	maxKept        = 128 << 20 // bytes of declarations and notes of one node
)

// indexAtOnce is how many segments are stepped through side by side.
const indexAtOnce = 8

func openSegments(m Manifest, paths []string) (*segments, error) {
	s := &segments{manifest: m, index: map[StreamID]int{}}
	var kept atomic.Int64
	for some := range slices.Chunk(paths, indexAtOnce) {
		found, errs := make([]indexed, len(some)), make([]error, len(some))
		var all sync.WaitGroup
		for i, path := range some {
			all.Go(func() { found[i], errs[i] = indexFile(path, &kept) })
		}
		all.Wait()
		if err := cmp.Or(errs...); err != nil {
			return nil, err
		}
		for i := range found {
			s.add(&found[i])
		}
		kept.Store(s.kept) // most declarations repeat what is known
	}
	return s, s.dropUndeclared()
}

// indexed is what stepping through one segment finds.
type indexed struct {
	segmentPart // without a path if the file is no segment
	told        []told
	kept        *atomic.Int64 // bytes told by all segments together
	found       Damage
}

// told is a declaration or a note.
type told struct {
	kind   FrameType
	stream StreamID
	body   []byte
}

// indexFile finds the declarations and notes of one segment, and where its records stand. What is no segment at all is counted.
func indexFile(path string, kept *atomic.Int64) (x indexed, err error) {
	x.kept = kept
	f, err := OpenRegular(path)
	if err != nil {
		x.found.BadFiles++
		return x, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return x, fmt.Errorf("reading %s: %w", path, err)
	}
	frames := &frameReader{found: &x.found}
	frames.file.open(f, info.Size())
	if err := frames.header(); err != nil {
		if errors.Is(err, errNotSegment) {
			x.found.BadFiles++
			return x, nil
		}
		return x, fmt.Errorf("reading %s: %w", path, err)
	}
	x.segmentPart = segmentPart{path, info.Size(), frameIndex{}}
	for frames.next() {
		if err := x.frame(frames); err != nil {
			return x, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	if frames.err != nil {
		return x, fmt.Errorf("reading %s: %w", path, frames.err)
	}
	return x, nil
}

func (x *indexed) frame(frames *frameReader) error {
	switch h := frames.frame; h.Type {
	case FrameRecords:
		x.records(frames)
	case FrameDeclaration, FrameNote:
		return x.tell(frames)
	default:
		x.found.UnknownFrames++
	}
	return nil
}

// records notes where a frame of records stands.
func (x *indexed) records(frames *frameReader) {
	switch n := int(frames.frame.Length); {
	case n%Size != 0:
		x.found.BadFrames++
	case n > 0:
		x.frames.add(frames.frame.Stream, frames.start, n/Size)
	}
}

// tell keeps a declaration or a note.
func (x *indexed) tell(frames *frameReader) error {
	h := frames.frame
	if x.kept.Add(int64(h.Length)) > maxKept {
		x.kept.Add(-int64(h.Length))
		x.found.DroppedNotes++
		return nil
	}
	body, ok, err := frames.body()
	if err != nil || !ok {
		return err
	}
	x.told = append(x.told, told{h.Type, h.Stream, slices.Clone(body)})
	return nil
}

// add takes what was found in the next segment.
func (s *segments) add(x *indexed) {
	s.found = s.found.Add(x.found)
	if x.path == "" {
		return
	}
	s.parts = append(s.parts, x.segmentPart)
	for _, t := range x.told {
		if t.kind == FrameDeclaration {
			s.declare(t.stream, t.body)
		} else {
			s.note(t.stream, t.body)
		}
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
	s.kept += int64(len(body))
}

func (s *segments) note(id StreamID, body []byte) {
	i, known := s.index[id]
	if !known {
		s.found.Undeclared++
		return
	}
	s.streams[i].Notes.Add(body)
	s.kept += int64(len(body))
}

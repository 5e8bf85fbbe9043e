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
	"os"
)

// segments reads a node's folder of segments.
type segments struct {
	manifest Manifest
	parts    []segmentPart
	streams  []Stream
	index    map[StreamID]int // position in streams
	kept     int64            // bytes of declarations and notes
	found    Damage
}

// segmentPart is one segment, up to the length it had when it was opened: the agent may still be writing it.
type segmentPart struct {
	path   string
	size   int64
	frames frameIndex
}

// Manifest returns the node's manifest, the zero one if the agent wrote none.
func (s *segments) Manifest() Manifest { return s.manifest }

// Streams returns the declared streams in the order of their numbers.
func (s *segments) Streams() []Stream { return s.streams }

// Damage counts what opening could not read, and what the notes say was lost.
func (s *segments) Damage() Damage { return s.found.Add(noteDamage(s.streams)) }

// Stream visits the records of one stream, segment by segment.
func (s *segments) Stream(id StreamID, visit func([]Record) error) (d Damage, err error) {
	file := windows.Get().(*window)
	defer windows.Put(file)
	for i := range s.parts {
		err := s.parts[i].read(id, file, &d, func(records []Record) error { return visitWhole(records, &d, visit) })
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
	f, err := p.open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	run.each(func(at int64, records int) bool {
		err = readFrame(file, at, id, records, d, visit)
		return err == nil
	})
	return err
}

// open has the window look at the segment, which the caller closes.
func (p *segmentPart) open(file *window) (*os.File, error) {
	f, err := OpenRegular(p.path)
	if err != nil {
		return nil, fmt.Errorf("reading recording: %w", err)
	}
	file.open(f, p.size)
	return f, nil
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

// A recording's frames over a pipe: the header of a segment, then frames as they come (SPEC §6).

package recording

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxPipeBody bounds a frame read from a pipe, in bytes. What a [PipeWriter] writes is far smaller.
const maxPipeBody = 1 << 20

// PipeWriter is a Sink that writes every call at once as frames, for the process at the other end. It is for one goroutine.
type PipeWriter struct {
	w       io.Writer
	streams StreamID
	buf     []byte
}

// NewPipeWriter writes the header and returns the sink.
func NewPipeWriter(w io.Writer) (*PipeWriter, error) {
	if _, err := w.Write(segmentHeader()); err != nil {
		return nil, fmt.Errorf("writing to pipe: %w", err)
	}
	return &PipeWriter{w: w}, nil
}

// Declare writes the declaration.
func (p *PipeWriter) Declare(d Declaration) (StreamID, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return 0, fmt.Errorf("declaring stream: %w", err)
	}
	p.streams++
	return p.streams, p.frame(FrameDeclaration, p.streams, body)
}

// Records writes the records, in several frames if there are many.
func (p *PipeWriter) Records(id StreamID, records []Record) error {
	for len(records) > 0 {
		n := min(len(records), frameBytes/Size)
		if err := p.frame(FrameRecords, id, bytesOf(records[:n])); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// Note writes the note.
func (p *PipeWriter) Note(id StreamID, note json.RawMessage) error {
	return p.frame(FrameNote, id, note)
}

func (p *PipeWriter) frame(t FrameType, id StreamID, body []byte) error {
	if id == 0 || id > p.streams {
		return fmt.Errorf("writing stream %d: not declared", id)
	}
	if len(body) > maxPipeBody {
		return fmt.Errorf("writing to pipe: a frame of %d bytes, at most %d fit", len(body), maxPipeBody)
	}
	p.buf = AppendFrame(p.buf[:0], t, id, body)
	if _, err := p.w.Write(p.buf); err != nil {
		return fmt.Errorf("writing to pipe: %w", err)
	}
	return nil
}

// PipeFrame is one frame that came over a pipe.
type PipeFrame struct {
	Type   FrameType
	Stream StreamID
	Body   []byte // owned by the receiver
}

// PipeReader reads what a PipeWriter writes. Unlike a file, a pipe that is damaged is not read on: the process at the other end
// is broken, and frames behind a wrong length cannot be found.
type PipeReader struct {
	r      *bufio.Reader
	opened bool
}

// NewPipeReader returns a reader; it waits for nothing yet.
func NewPipeReader(r io.Reader) *PipeReader {
	return &PipeReader{r: bufio.NewReaderSize(r, frameBytes)}
}

// Next waits for one frame. io.EOF means that the other end closed the pipe between two frames.
func (p *PipeReader) Next() (PipeFrame, error) {
	if !p.opened {
		if err := p.header(); err != nil {
			return PipeFrame{}, err
		}
		p.opened = true
	}
	var b [FrameHeaderBytes]byte
	if _, err := io.ReadFull(p.r, b[:]); err != nil {
		return PipeFrame{}, cut(err)
	}
	h := ParseFrameHeader(b[:])
	if h.Length > maxPipeBody {
		return PipeFrame{}, fmt.Errorf("reading pipe: a frame of %d bytes", h.Length)
	}
	body := make([]byte, h.Length)
	if _, err := io.ReadFull(p.r, body); err != nil {
		return PipeFrame{}, fmt.Errorf("reading pipe: %w", io.ErrUnexpectedEOF)
	}
	if !h.Matches(body) || h.Stream == 0 || h.Type == FrameRecords && len(body)%Size != 0 {
		return PipeFrame{}, errors.New("reading pipe: a damaged frame")
	}
	return PipeFrame{h.Type, h.Stream, body}, nil
}

func (p *PipeReader) header() error {
	var b [SegmentHeaderBytes]byte
	if _, err := io.ReadFull(p.r, b[:]); err != nil {
		return cut(err)
	}
	if string(b[:]) != string(segmentHeader()) {
		return fmt.Errorf("reading pipe: it starts with %q: %w", b[:8], errNotSegment)
	}
	return nil
}

// cut tells an end between frames from one within.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return fmt.Errorf("reading pipe: %w", err)
}

// PipeForward hands frames to a sink and translates stream numbers. It counts what does not fit and reads on.
type PipeForward struct {
	sink    Sink
	streams map[StreamID]StreamID
	Damage  Damage // frames that were not forwarded
}

// NewPipeForward returns a forwarder into the sink.
func NewPipeForward(sink Sink) *PipeForward {
	return &PipeForward{sink: sink, streams: map[StreamID]StreamID{}}
}

// Forward hands one frame on. The error is the sink's.
func (p *PipeForward) Forward(f PipeFrame) error {
	if f.Type == FrameDeclaration {
		return p.declare(f)
	}
	id, declared := p.streams[f.Stream]
	switch {
	case !declared:
		p.Damage.Undeclared++
		return nil
	case f.Type == FrameRecords:
		return p.whole(id, recordsOf(f.Body))
	case f.Type == FrameNote && json.Valid(f.Body):
		return p.sink.Note(id, f.Body)
	case f.Type == FrameNote:
		p.Damage.BadNotes++
	default:
		p.Damage.UnknownFrames++
	}
	return nil
}

// maxPipeStreams bounds what one process may declare.
const maxPipeStreams = 1024

func (p *PipeForward) declare(f PipeFrame) error {
	d, err := parseDeclaration(f.Body)
	if err != nil || p.streams[f.Stream] != 0 || len(p.streams) >= maxPipeStreams {
		p.Damage.BadFrames++
		return nil
	}
	id, err := p.sink.Declare(d)
	if err == nil {
		p.streams[f.Stream] = id
	}
	return err
}

// whole forwards the records that are whole; a kind this version does not know is kept for one that does.
func (p *PipeForward) whole(id StreamID, records []Record) error {
	for len(records) > 0 {
		n := 0
		for n < len(records) && records[n].Whole() {
			n++
		}
		if n > 0 {
			if err := p.sink.Records(id, records[:n]); err != nil {
				return err
			}
		}
		if n < len(records) {
			p.Damage.Torn++
			n++
		}
		records = records[n:]
	}
	return nil
}

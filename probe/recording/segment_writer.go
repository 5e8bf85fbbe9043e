// Writing one node of a recording (SPEC §6).
//
// Records of a stream are gathered into frames of up to 32 KiB: a reader's cost is per frame as much as per record, and a
// probe hands over a few records at a time. What is gathered is written at Flush, which the agent calls about once a second.
//
// A full disk ends the recording, not the job: the error is returned from then on, the file is cut back to its last whole
// frame, and everything before stays readable.

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/datawait/datawait/probe/unit"
)

// Options of a recording's writer. The zero value is the default.
type Options struct {
	SegmentBytes int64 // a segment is closed when it reaches this size; 0 = 64 MiB
	// createSegment stands in for the disk in tests.
	createSegment func(path string) (segmentFile, error)
}

// segmentFile is what the writer needs of a file.
type segmentFile interface {
	Write([]byte) (int, error)
	Truncate(int64) error
	Sync() error
	Close() error
}

const (
	defaultSegmentBytes = 64 << 20
	frameBytes          = 32 << 10 // records gathered per stream before a frame is made
	writeBytes          = 256 << 10
	pendingBytes        = 4 << 20 // gathered over all streams before all of it is written
	spareBuffers        = 64
)

// Writer writes one node's folder. It implements [Sink] and, like every Sink, is for one goroutine.
type Writer struct {
	dir      string
	manifest Manifest
	options  Options

	streams []writerStream
	pending int        // bytes gathered over all streams
	dirty   []StreamID // streams with gathered records
	spare   [][]byte   // gathering buffers not in use

	segment segmentFile
	number  int    // of the segment, from 1
	size    int64  // of the segment, written and in out
	good    int64  // of the segment: what is certainly in the file
	out     []byte // frames not yet handed to the file
	err     error  // the first failed write; nothing is written after it
}

type writerStream struct {
	declaration []byte // nil once it has ended and all of it is written
	ended       bool
	segment     int    // last segment that declares it
	gathered    []byte // records not yet in a frame
	dirty       bool   // listed in Writer.dirty
}

// Create makes dir/node-<host> with its manifest and first segment. It refuses a folder that already holds that node.
func Create(dir string, m Manifest, o Options) (*Writer, error) {
	m.Format = Format
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.createSegment == nil {
		o.createSegment = createSegmentFile
	}
	w := &Writer{dir: filepath.Join(dir, NodeFolder(m.Host)), manifest: m, options: o}
	if err := w.create(dir); err != nil {
		return nil, fmt.Errorf("creating recording %s: %w", w.dir, explain(err))
	}
	return w, nil
}

func (w *Writer) create(parent string) error {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(w.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if old, _ := segmentFiles(w.dir); len(old) > 0 {
		return fmt.Errorf("it already holds %d segments", len(old))
	}
	if err := writeManifest(w.dir, w.manifest); err != nil {
		return err
	}
	return w.nextSegment()
}

// NodeFolder returns the folder name of a host within a recording.
func NodeFolder(host string) string {
	safe := strings.Map(func(c rune) rune {
		if c == '.' || c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, host)
	return nodePrefix + safe
}

// Dir returns the node's folder.
func (w *Writer) Dir() string { return w.dir }

// Err returns what ended the recording early, nil while it is written.
func (w *Writer) Err() error { return w.err }

// Declare introduces a stream. Its declaration is written before its first records or note, in every segment.
func (w *Writer) Declare(d Declaration) (StreamID, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return 0, fmt.Errorf("declaring stream: %w", err)
	}
	w.streams = append(w.streams, writerStream{declaration: b})
	id := StreamID(len(w.streams))
	return id, w.declareHere(id)
}

// Records gathers records of a declared stream.
func (w *Writer) Records(id StreamID, records []Record) error {
	s, err := w.stream(id)
	if err != nil {
		return err
	}
	for len(records) > 0 {
		n := min(len(records), (frameBytes-len(s.gathered))/Size)
		w.gather(id, s, records[:n])
		records = records[n:]
		if len(s.gathered) >= frameBytes {
			if err := w.emit(id); err != nil {
				return err
			}
		}
	}
	if w.pending >= pendingBytes {
		return w.Flush()
	}
	return nil
}

// Note writes one note, after the records of its stream that came before it.
func (w *Writer) Note(id StreamID, note json.RawMessage) error {
	if _, err := w.stream(id); err != nil {
		return err
	}
	if len(note) > MaxFrameBody {
		return fmt.Errorf("writing a note of %d bytes: at most %d fit a frame", len(note), MaxFrameBody)
	}
	if err := w.emit(id); err != nil {
		return err
	}
	return w.frame(FrameNote, id, note)
}

// End says that nothing more will come of a stream.
func (w *Writer) End(id StreamID) {
	if s, err := w.stream(id); err == nil {
		s.ended = true
		s.forget()
	}
}

// forget drops the declaration of a stream that has ended.
func (s *writerStream) forget() {
	if s.ended && len(s.gathered) == 0 {
		s.declaration = nil
	}
}

// Flush writes everything gathered so far to the file.
func (w *Writer) Flush() error {
	dirty := w.dirty
	w.dirty = w.dirty[:0]
	for _, id := range dirty {
		w.streams[id-1].dirty = false
		if err := w.emit(id); err != nil {
			return err
		}
	}
	return w.write()
}

// Close writes what is left and the manifest with the ending. The manifest is replaced even after a failed write, if it can
// be: it then names the failure as a warning.
func (w *Writer) Close(e Ending) error {
	err := w.Flush()
	if err == nil {
		err = w.segment.Sync()
	}
	if err != nil {
		e.Warnings = append(append([]string{}, e.Warnings...), err.Error())
	}
	m := w.manifest.ended(e)
	if err != nil { // what came after the last whole frame is missing: the run went on, the recording did not
		m.EndedAt, m.EndedMonotonic = unit.Maybe[time.Time]{}, unit.Maybe[uint64]{}
	}
	err = errors.Join(err, w.segment.Close())
	if merr := writeManifest(w.dir, m); merr != nil {
		err = errors.Join(err, fmt.Errorf("closing recording %s: %w", w.dir, explain(merr)))
	}
	return err
}

func (w *Writer) stream(id StreamID) (*writerStream, error) {
	if w.err != nil {
		return nil, w.err
	}
	if id == 0 || int(id) > len(w.streams) || w.streams[id-1].declaration == nil {
		return nil, fmt.Errorf("writing stream %d: not declared, or ended", id)
	}
	return &w.streams[id-1], nil
}

// gather appends records to the stream's buffer, which it borrows from the spare ones.
func (w *Writer) gather(id StreamID, s *writerStream, records []Record) {
	if s.gathered == nil {
		s.gathered = w.borrow()
	}
	if !s.dirty {
		s.dirty = true
		w.dirty = append(w.dirty, id)
	}
	s.gathered = append(s.gathered, bytesOf(records)...)
	w.pending += len(records) * Size
}

// emit turns the gathered records of a stream into a frame.
func (w *Writer) emit(id StreamID) error {
	s := &w.streams[id-1]
	if len(s.gathered) == 0 {
		return w.err
	}
	body := s.gathered
	s.gathered = nil
	w.pending -= len(body)
	err := w.frame(FrameRecords, id, body)
	s.forget()
	w.giveBack(body)
	return err
}

// frame appends one frame, opening the next segment and declaring the stream in it where needed.
func (w *Writer) frame(t FrameType, id StreamID, body []byte) error {
	if w.err != nil {
		return w.err
	}
	if w.size+int64(FrameHeaderBytes+len(body)) > w.options.SegmentBytes && w.size > SegmentHeaderBytes {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	if err := w.declareHere(id); err != nil {
		return err
	}
	return w.append(t, id, body)
}

func (w *Writer) declareHere(id StreamID) error {
	s := &w.streams[id-1]
	if w.err != nil || s.segment == w.number {
		return w.err
	}
	s.segment = w.number
	return w.append(FrameDeclaration, id, s.declaration)
}

func (w *Writer) append(t FrameType, id StreamID, body []byte) error {
	w.out = AppendFrame(w.out, t, id, body)
	w.size += int64(FrameHeaderBytes + len(body))
	if len(w.out) >= writeBytes {
		return w.write()
	}
	return nil
}

// borrow returns an empty buffer; giveBack keeps some of them for the next stream.
func (w *Writer) borrow() []byte {
	if n := len(w.spare); n > 0 {
		b := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return b
	}
	return make([]byte, 0, 1024)
}

func (w *Writer) giveBack(b []byte) {
	if len(w.spare) < spareBuffers {
		w.spare = append(w.spare, b[:0])
	}
}

var errFull = errors.New("the disk is full; what was written before stays readable")

// explain adds to an error, once, what it means for the recording.
func explain(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if full && !errors.Is(err, errFull) {
		return fmt.Errorf("%w: %w", err, errFull)
	}
	return err
}

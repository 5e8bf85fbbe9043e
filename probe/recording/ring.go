// Reading a ring (SPEC §4).
//
// A ring belongs to a process that may write, lap the reader or die at any moment, so nothing here maps the file (a
// truncated map is a SIGBUS) and every number is checked before it is used.

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Ring reads one process's ring, live or finished. It is for one goroutine.
type Ring struct {
	path     string
	f        *os.File    // nil while released
	identity os.FileInfo // of the file first opened
	capacity uint64

	declaration Declaration
	next        uint64 // number of the next record to read, from 1
	deferred    uint64 // number of a torn record that was left for one more look
	noteAt      uint64 // note bytes taken
	lost, torn  uint64
	badNotes    uint64
}

// OpenRing opens a ring and reads its declaration. [ErrNotReady] asks to try again later, [ErrNotRing] not to.
func OpenRing(path string) (*Ring, error) {
	r := &Ring{path: path, next: 1}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("opening ring %s: %w", path, err)
	}
	return r, nil
}

func (r *Ring) open() error {
	if err := r.acquire(); err != nil {
		return err
	}
	if err := ownedBySpool(r.path, r.identity); err != nil {
		return fmt.Errorf("%w: %w", err, ErrNotRing)
	}
	if r.identity.Size() == 0 {
		return ErrUnmade // its process has not allocated it yet
	}
	if r.identity.Size() < RingHeaderBytes {
		return ErrNotReady
	}
	h, err := r.header()
	if err != nil {
		return err
	}
	r.capacity = uint64(h.Capacity)
	if want := RingHeaderBytes + int64(r.capacity)*Size; r.identity.Size() < want {
		return fmt.Errorf("file of %d bytes claims %d records: %w", r.identity.Size(), r.capacity, ErrNotRing)
	}
	return r.declare(h)
}

// acquire opens the file, or opens it again after Release: only if it is still the same file.
func (r *Ring) acquire() error {
	if r.f != nil {
		return nil
	}
	f, err := OpenRegular(r.path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && r.identity != nil && !os.SameFile(info, r.identity) {
		err = fmt.Errorf("another file took its place: %w", ErrNotRing)
	}
	if err != nil {
		f.Close()
		return err
	}
	r.f, r.identity = f, info
	return nil
}

// declare reads the first note. Without it the records mean nothing.
func (r *Ring) declare(h RingHeader) error {
	lines, err := r.lines(h)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return ErrNotReady
	}
	d, err := parseDeclaration(lines[0])
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrNotRing)
	}
	r.declaration = d
	r.noteAt = uint64(len(lines[0]) + 1)
	return nil
}

// Declaration returns what the process said of itself.
func (r *Ring) Declaration() Declaration { return r.declaration }

// Lost returns how many records were overwritten before they were read, so far.
func (r *Ring) Lost() uint64 { return r.lost }

// Torn returns how many records were caught half written, so far.
func (r *Ring) Torn() uint64 { return r.torn }

// BadNotes returns how many notes were not JSON objects, so far.
func (r *Ring) BadNotes() uint64 { return r.badNotes }

// Header reads the header as it stands now.
func (r *Ring) Header() (RingHeader, error) {
	h, err := r.header()
	if err != nil {
		return RingHeader{}, fmt.Errorf("reading ring %s: %w", r.path, err)
	}
	return h, nil
}

func (r *Ring) header() (RingHeader, error) {
	if err := r.acquire(); err != nil {
		return RingHeader{}, err
	}
	var b [ringFixed]byte
	if err := readFull(r.f, b[:], 0); err != nil {
		return RingHeader{}, err
	}
	h, err := ParseRingHeader(b[:])
	if err == nil && r.capacity != 0 && uint64(h.Capacity) != r.capacity {
		err = fmt.Errorf("capacity changed from %d to %d: %w", r.capacity, h.Capacity, ErrNotRing)
	}
	return h, err
}

// Notes returns the notes written between the last call and the reading of h, the declaration left out.
func (r *Ring) Notes(h RingHeader) ([]json.RawMessage, error) {
	lines, err := r.lines(h)
	if err != nil {
		return nil, fmt.Errorf("reading notes of ring %s: %w", r.path, err)
	}
	var notes []json.RawMessage
	for _, line := range lines {
		r.noteAt += uint64(len(line) + 1)
		if len(line) > 0 && line[0] == '{' && json.Valid(line) {
			notes = append(notes, line)
		} else {
			r.badNotes++
		}
	}
	return notes, nil
}

// lines returns the whole lines of the note area that were not taken yet.
func (r *Ring) lines(h RingHeader) (lines [][]byte, err error) {
	used := min(h.NoteBytes, RingMaxNotes)
	if used <= r.noteAt {
		return nil, nil
	}
	if err := r.acquire(); err != nil {
		return nil, err
	}
	b := make([]byte, used-r.noteAt)
	if err := readFull(r.f, b, RingNotesAt+int64(r.noteAt)); err != nil {
		return nil, err
	}
	start := 0
	for i, c := range b {
		if c == '\n' {
			lines = append(lines, b[start:i:i])
			start = i + 1
		}
	}
	return lines, nil
}

// Totals reads the sums of every loader slot.
func (r *Ring) Totals() (totals [RingTotalSlots]Totals, err error) {
	err = r.acquire()
	var b [RingTotalSlots * TotalsBytes]byte
	if err == nil {
		err = readFull(r.f, b[:], RingTotalsAt)
	}
	if err != nil {
		return totals, fmt.Errorf("reading totals of ring %s: %w", r.path, err)
	}
	for i := range totals {
		totals[i] = ParseTotals(b[i*TotalsBytes:])
	}
	return totals, nil
}

// Release closes the file but keeps the place; the next call opens it again. With thousands of rings it bounds the number
// of open files.
func (r *Ring) Release() {
	if r.f != nil {
		r.f.Close()
		r.f = nil
	}
}

// Close ends reading. The file stays.
func (r *Ring) Close() error {
	r.Release()
	return nil
}

// readFull reads len(b) bytes; a file that ends before is a ring no longer.
func readFull(f *os.File, b []byte, at int64) error {
	_, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("file ends within %d bytes at %d: %w", len(b), at, ErrNotRing)
	}
	return err
}

// parseDeclaration decodes a declaration; a field of the wrong type stays unknown.
func parseDeclaration(b []byte) (d Declaration, err error) {
	err = json.Unmarshal(b, &d)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && len(b) > 0 && b[0] == '{' {
		err = nil
	}
	switch {
	case err != nil:
		return Declaration{}, fmt.Errorf("declaration: %w", err)
	case d.Producer == "":
		return Declaration{}, errors.New("declaration names no producer")
	}
	return d, nil
}

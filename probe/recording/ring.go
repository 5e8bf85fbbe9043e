// Reading a ring (SPEC §4).
//
// A ring belongs to a process that may write, lap the reader or die at any moment, so nothing here maps the file (a
// truncated map is a SIGBUS) and every number is checked before it is used. The order of reads makes the result sound:
// records first, then the head again. A record is believed only if, at that second look, its slot could not have been
// under the pen for the record one lap ahead.

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
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
	if r.identity.Size() < RingHeaderBytes {
		return ErrNotReady // its process has not allocated it yet
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
	f, err := openRegular(r.path)
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

// headerTries bounds how often header looks for two equal readings.
const headerTries = 8

// header reads the fields until two readings agree: a store into the mapped page may be seen half done.
func (r *Ring) header() (RingHeader, error) {
	if err := r.acquire(); err != nil {
		return RingHeader{}, err
	}
	var b, again [ringFixed]byte
	if err := readFull(r.f, b[:], 0); err != nil {
		return RingHeader{}, err
	}
	for range headerTries {
		if err := readFull(r.f, again[:], 0); err != nil {
			return RingHeader{}, err
		}
		if b == again {
			break
		}
		b = again
	}
	h, err := ParseRingHeader(b[:])
	if err == nil && r.capacity != 0 && uint64(h.Capacity) != r.capacity {
		err = fmt.Errorf("capacity changed from %d to %d: %w", r.capacity, h.Capacity, ErrNotRing)
	}
	return h, err
}

// Notes returns the notes written since the last call, the declaration left out.
func (r *Ring) Notes() ([]json.RawMessage, error) {
	h, err := r.Header()
	if err != nil {
		return nil, err
	}
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

// Drain visits the records written since the last call, oldest first. The slice is valid only during the call. An error of
// visit ends the drain; the records it was shown count as taken.
func (r *Ring) Drain(visit func([]Record) error) error { return r.drain(true, visit) }

// Finish is Drain after the process has ended: no slot is under the pen any more, so none is given up for safety.
func (r *Ring) Finish(visit func([]Record) error) error { return r.drain(false, visit) }

// chunkRecords is how much of a ring is read at once: 64 KiB.
const chunkRecords = 1024

var chunks = sync.Pool{New: func() any { return new([chunkRecords]Record) }}

func (r *Ring) drain(live bool, visit func([]Record) error) error {
	h, err := r.Header()
	if err != nil {
		return err
	}
	if h.Head+1 < r.next {
		return fmt.Errorf("draining ring %s: head went back from %d to %d: %w", r.path, r.next-1, h.Head, ErrNotRing)
	}
	chunk := chunks.Get().(*[chunkRecords]Record)
	defer chunks.Put(chunk)
	r.skipTo(r.oldestSafe(h.Head, live))
	for r.next <= h.Head {
		n := min(h.Head-r.next+1, chunkRecords, r.capacity-r.slot(r.next))
		more, err := r.drainChunk(chunk[:n], h.Head, live, visit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// slot returns where record number n stands.
func (r *Ring) slot(n uint64) uint64 { return (n - 1) & (r.capacity - 1) }

// oldestSafe returns the number of the oldest record that cannot have been touched when the head stood at head. While the
// process lives, it may be writing number head+1 into the slot of number head+1-capacity.
func (r *Ring) oldestSafe(head uint64, live bool) uint64 {
	if live {
		head++
	}
	if head < r.capacity {
		return 1
	}
	return head - r.capacity + 1
}

// skipTo gives up the records before number n.
func (r *Ring) skipTo(n uint64) {
	if n > r.next {
		r.lost += n - r.next
		r.next = n
	}
}

// drainChunk reads len(chunk) records from r.next on, looks at the head again, and visits those that stood still.
func (r *Ring) drainChunk(chunk []Record, head uint64, live bool, visit func([]Record) error) (more bool, err error) {
	first := r.next
	at := RingHeaderBytes + int64(r.slot(first))*Size
	if err := readFull(r.f, bytesOf(chunk), at); err != nil {
		return false, fmt.Errorf("draining ring %s: %w", r.path, err)
	}
	now, err := r.Header()
	if err != nil {
		return false, err
	}
	r.skipTo(min(r.oldestSafe(now.Head, live), first+uint64(len(chunk))))
	return r.visitChunk(chunk, first, head, live, visit)
}

// visitChunk visits the runs of whole records in the chunk, whose first record has number first.
func (r *Ring) visitChunk(chunk []Record, first, head uint64, live bool, visit func([]Record) error) (more bool, err error) {
	for r.next < first+uint64(len(chunk)) {
		run := wholeRun(chunk[r.next-first:], uint32(r.next))
		if run > 0 {
			at := r.next - first
			r.next += uint64(run)
			if err := visit(chunk[at : at+uint64(run)]); err != nil {
				return false, err
			}
			continue
		}
		if live && r.postpone(head) {
			return false, nil
		}
		r.torn++
		r.next++
	}
	return true, nil
}

// wholeRun counts the records at the start of the chunk that are whole and carry the numbers from seq on. Number 0, once
// in 2^32 records, looks like a slot never written and is counted as torn.
func wholeRun(chunk []Record, seq uint32) int {
	for i := range chunk {
		if !chunk[i].Whole() || chunk[i].Seq() != seq+uint32(i) {
			return i
		}
	}
	return len(chunk)
}

// postpone reports whether the torn record at r.next should be looked at once more: near the head its bytes may still be
// on their way from another core.
func (r *Ring) postpone(head uint64) bool {
	const near = 64
	if head-r.next >= near || r.deferred == r.next {
		return false
	}
	r.deferred = r.next
	return true
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

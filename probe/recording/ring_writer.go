package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"syscall"
)

// RingWriter is a producer in Go: for a loader process that is not Python, for the demo, and for tests of the readers. It
// uses pwrite; a record costs two system calls, so it suits thousands of records a second, not millions.
type RingWriter struct {
	f      *os.File
	header RingHeader
	totals [RingTotalSlots]Totals
}

var errNoteFull = errors.New("the note area is full")

// CreateRing makes a ring for this declaration. The whole file is allocated first, so that a full disk fails here; the
// magic comes last, so that a reader never sees half a header.
func CreateRing(path string, capacity uint32, d Declaration) (*RingWriter, error) {
	w := &RingWriter{header: RingHeader{Capacity: capacity, State: RingOpen, Hook: HookObserving, EpochLength: Unknown64}}
	if err := w.create(path, d); err != nil {
		return nil, fmt.Errorf("creating ring %s: %w", path, err)
	}
	return w, nil
}

func (w *RingWriter) create(path string, d Declaration) (err error) {
	if err := w.header.check(RingHeaderBytes, Size); err != nil {
		return err
	}
	w.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.f.Close()
			os.Remove(path)
		}
	}()
	if err = syscall.Fallocate(int(w.f.Fd()), 0, 0, RingHeaderBytes+int64(w.header.Capacity)*Size); err != nil {
		return err
	}
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err = w.appendNote(line); err != nil {
		return err
	}
	_, err = w.f.WriteAt([]byte(RingMagic), 0)
	return err
}

// Write numbers one record and puts it into the ring; the oldest is overwritten when the ring is full.
func (w *RingWriter) Write(r Record) error {
	n := w.header.Head + 1
	r.SetSeq(uint32(n))
	slot := int64((n - 1) & uint64(w.header.Capacity-1))
	if _, err := w.f.WriteAt(r[:], RingHeaderBytes+slot*Size); err != nil {
		return fmt.Errorf("writing record %d: %w", n, err)
	}
	return w.Update(func(h *RingHeader) { h.Head = n })
}

// Note appends one note; one that does not fit is counted in the header.
func (w *RingWriter) Note(n Note) error {
	err := w.appendNote(EncodeNote(n))
	if errors.Is(err, errNoteFull) {
		return w.Update(func(h *RingHeader) { h.NotesDropped++ })
	}
	return err
}

func (w *RingWriter) appendNote(line []byte) error {
	line = append(line, '\n')
	at := w.header.NoteBytes
	if at+uint64(len(line)) > RingMaxNotes {
		return errNoteFull
	}
	if _, err := w.f.WriteAt(line, RingNotesAt+int64(at)); err != nil {
		return err
	}
	return w.Update(func(h *RingHeader) { h.NoteBytes += uint64(len(line)) })
}

// Update changes header fields and writes them, the magic left alone.
func (w *RingWriter) Update(change func(*RingHeader)) error {
	change(&w.header)
	_, err := w.f.WriteAt(w.header.Encode()[8:], 8)
	return err
}

// UpdateTotals changes the sums of one loader slot.
func (w *RingWriter) UpdateTotals(loader uint16, change func(*Totals)) error {
	slot := min(int(loader), RingTotalSlots-1)
	change(&w.totals[slot])
	_, err := w.f.WriteAt(w.totals[slot].Encode(), RingTotalsAt+int64(slot)*TotalsBytes)
	return err
}

// Close marks the ring as closed by its process.
func (w *RingWriter) Close() error {
	err := w.Update(func(h *RingHeader) { h.State = RingClosed })
	return errors.Join(err, w.f.Close())
}

// Abandon closes the file as a killed process would leave it.
func (w *RingWriter) Abandon() error { return w.f.Close() }

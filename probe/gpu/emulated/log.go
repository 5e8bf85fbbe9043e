package emulated

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/datawait/datawait/probe/recording"
)

// busyLog follows one log as it grows. A part of an entry at the end is a writer in the middle of an append: it is read
// when it is whole.
type busyLog struct {
	f      *os.File
	offset int64 // of the next entry
	size   int64 // of the file, and how many names it has, when it was looked at last
	names  uint64
	buf    [512 * recording.BusyEntryBytes]byte
}

var errNotYet = errors.New("busy log has no header yet")

func openLog(path string) (*busyLog, recording.BusyHeader, error) {
	f, err := recording.OpenRegular(path)
	if err != nil {
		return nil, recording.BusyHeader{}, fmt.Errorf("opening busy log: %w", err)
	}
	l := &busyLog{f: f, offset: recording.BusyHeaderBytes}
	n, err := f.ReadAt(l.buf[:recording.BusyHeaderBytes], 0)
	if err == nil || errors.Is(err, io.EOF) && n == recording.BusyHeaderBytes {
		h, err := recording.ParseBusyHeader(l.buf[:recording.BusyHeaderBytes])
		if err == nil {
			return l, h, nil
		}
		f.Close()
		return nil, h, fmt.Errorf("opening busy log %s: %w", path, err)
	}
	f.Close()
	if errors.Is(err, io.EOF) {
		err = errNotYet
	}
	return nil, recording.BusyHeader{}, fmt.Errorf("opening busy log %s: %w", path, err)
}

// look asks once a sample for what next, shrunk and nameless go by.
func (l *busyLog) look() error {
	var s syscall.Stat_t
	if err := syscall.Fstat(int(l.f.Fd()), &s); err != nil {
		return fmt.Errorf("reading busy log: %w", err)
	}
	l.size, l.names = s.Size, uint64(s.Nlink)
	return nil
}

// next returns the whole entries that follow, at most room of them and none at the end. The slice is valid until the next call.
func (l *busyLog) next(room int) ([]byte, error) {
	want := min(room*recording.BusyEntryBytes, len(l.buf), int(min(l.size-l.offset, int64(len(l.buf)))))
	if want < recording.BusyEntryBytes {
		return nil, nil
	}
	n, err := l.f.ReadAt(l.buf[:want], l.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading busy log: %w", err)
	}
	n -= n % recording.BusyEntryBytes
	l.offset += int64(n)
	return l.buf[:n], nil
}

// shrunk reports whether the file is shorter than what was read of it, and goes back to its end. Part of an entry may be cut
// off by a restarted writer; whole entries never are.
func (l *busyLog) shrunk() bool {
	if l.size >= l.offset {
		return false
	}
	entries := max(0, l.size-recording.BusyHeaderBytes) / recording.BusyEntryBytes
	l.offset = recording.BusyHeaderBytes + entries*recording.BusyEntryBytes
	return true
}

// nameless reports whether the log lost its name: its writer gave it up, or somebody removed it.
func (l *busyLog) nameless() bool { return l.names == 0 }

func (l *busyLog) close() error { return l.f.Close() }

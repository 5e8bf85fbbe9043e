// Package trackrecord keeps the file of checked predictions: one JSON line each, appended and never rewritten.
//
// It decides where the file lies. It never stands in anybody's way: a file that is missing, damaged, not writable or no file at all
// costs the quotation, not the report, and two programs that append at once keep both lines. What a line means is decided by
// package analysis/track.
package trackrecord

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/datawait/datawait/analysis/track"
)

// Off is the word that stands for no file.
const Off = "off"

// File is the file of checked predictions. The zero File is none: nothing is read and nothing is kept.
type File struct{ path string }

// At is the file that a reader named: a path, [Off], or "" for [Default].
func At(name string, getenv func(string) string) File {
	switch name {
	case "":
		return Default(getenv)
	case Off:
		return File{}
	}
	return File{name}
}

// Default is the file below $XDG_STATE_HOME, or below ~/.local/state where that is not set (XDG Base Directory Specification 0.8).
func Default(getenv func(string) string) File {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // as the specification has it, a relative one counts for nothing
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return File{}
		}
		state = filepath.Join(home, ".local", "state")
	}
	return File{filepath.Join(state, "datawait", "track-record.jsonl")}
}

// Path is where the file lies; "" for none.
func (f File) Path() string { return f.path }

// most is how much of the file is read: its end. 8 MiB are twenty thousand predictions.
const most = 8 << 20

// Read returns the checked predictions. A file that is not there holds none.
func (f File) Read() ([]track.Entry, error) {
	if f.path == "" {
		return nil, nil
	}
	file, size, err := open(f.path, os.O_RDONLY)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the track record: %w", err)
	}
	defer file.Close()
	entries, _, err := track.Read(io.NewSectionReader(file, max(0, size-most), most))
	return entries, err
}

// Quote is what a report says of the predictions of one kind; nil for none. What cannot be read is not quoted.
func (f File) Quote(emulated bool) *track.TrackRecord {
	entries, _ := f.Read()
	return track.Summarise(entries, emulated)
}

// Keep appends the entries that are not in the file yet.
func (f File) Keep(entries []track.Entry) error {
	if f.path == "" || len(entries) == 0 {
		return nil
	}
	known, _ := f.Read() // what cannot be read is written once more, and counts once
	text, err := lines(entries, known)
	if err != nil || len(text) == 0 {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("keeping the track record: %w", err)
	}
	file, size, err := open(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("keeping the track record: %w", err)
	}
	defer file.Close()
	if torn(file, size) {
		text = append([]byte{'\n'}, text...)
	}
	if _, err := file.Write(text); err != nil { // one write in append mode: another's lines stay whole
		return fmt.Errorf("keeping the track record: %w", err)
	}
	return nil
}

// lines are the entries that are not known.
func lines(entries, known []track.Entry) ([]byte, error) {
	var text []byte
	for _, e := range entries {
		if repeated(e, known) {
			continue
		}
		line, err := e.Line()
		if err != nil {
			return nil, err
		}
		text = append(text, line...)
	}
	return text, nil
}

// repeated reports whether the same prediction is known with the same outcome, whenever and by whom it was checked.
func repeated(e track.Entry, known []track.Entry) bool {
	for _, k := range known {
		k.At, k.Version = e.At, e.Version
		if k == e {
			return true
		}
	}
	return false
}

// open opens a plain file. A pipe or device of that name would block or be harmed.
func open(path string, flag int) (*os.File, int64, error) {
	file, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", path)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// torn reports whether the last line has no end: who wrote it was killed, or the disk was full.
func torn(file *os.File, size int64) bool {
	if size == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err := file.ReadAt(last, size-1)
	return err != nil || !bytes.Equal(last, []byte{'\n'})
}

package recording

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHostileRings opens rings in which one thing is wrong.
func TestHostileRings(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	put64 := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], v); return b }
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		want   error
	}{
		{"empty", func([]byte) []byte { return nil }, ErrNotReady},
		{"allocated, nothing written", func(b []byte) []byte { clear(b); return b }, ErrNotReady},
		{"no declaration yet", put64(32, 0), ErrNotReady},
		{"half a declaration", put64(32, 10), ErrNotReady},
		{"other magic", func(b []byte) []byte { b[0] = 'X'; return b }, ErrNotRing},
		{"newer", put32(8, 2), ErrNewer},
		{"short header", put32(12, 4096), ErrNotRing},
		{"other record size", put32(16, 32), ErrNotRing},
		{"no capacity", put32(20, 0), ErrNotRing},
		{"capacity not a power of two", put32(20, 6), ErrNotRing},
		{"capacity beyond the file", put32(20, 64), ErrNotRing},
		{"capacity beyond belief", put32(20, 1<<31), ErrNotRing},
		{"head beyond belief", put64(24, Unknown64), ErrNotRing},
		{"notes beyond the area", put64(32, Unknown64), nil},
		{"declaration is garbage", func(b []byte) []byte { b[RingNotesAt] = 'x'; return b }, ErrNotRing},
		{"cut in the records", func(b []byte) []byte { return b[:RingHeaderBytes+Size] }, ErrNotRing},
		{"cut in the notes", func(b []byte) []byte { return b[:RingNotesAt+5] }, ErrNotReady},
	} {
		path, w := newRing(t, 4)
		w.Close()
		b, _ := os.ReadFile(path)
		if err := os.WriteFile(path, c.change(b), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRing(path)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			r.Close()
		}
	}
}

func TestWhatIsNotAFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	real, w := newRing(t, 4)
	w.Close()
	fifo, link := filepath.Join(dir, RingName(1, 1)), filepath.Join(dir, RingName(2, 1))
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, dir, "/dev/zero", filepath.Join(dir, "none")} {
		if _, err := OpenRing(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}

func TestAForeignFileIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path, w := newRing(t, 4)
	w.Close()
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Skip(err)
	}
	if _, err := OpenRing(path); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("got %v", err)
	}
	if err := os.Chown(filepath.Dir(path), 12345, -1); err != nil { // now the whole spool is theirs
		t.Fatal(err)
	}
	if _, err := OpenRing(path); err != nil {
		t.Error(err)
	}
}

func TestARingThatChangesUnderTheReader(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string, w *RingWriter)
	}{
		{"truncated", func(path string, _ *RingWriter) { os.Truncate(path, RingHeaderBytes) }},
		{"head went back", func(_ string, w *RingWriter) { w.Update(func(h *RingHeader) { h.Head = 1 }) }},
		{"capacity changed", func(_ string, w *RingWriter) { w.Update(func(h *RingHeader) { h.Capacity = 8 }) }},
	} {
		path, w := newRing(t, 16)
		writeNumbers(t, w, 1, 3)
		r, _ := OpenRing(path)
		collect(t, drain(r))
		writeNumbers(t, w, 4, 5)
		c.change(path, w)
		if err := drain(r)(func([]Record) error { return nil }); !errors.Is(err, ErrNotRing) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	path, w := newRing(t, 16)
	r, _ := OpenRing(path)
	r.Release()
	os.Rename(path, path+".old")
	second, _ := CreateRing(path, 16, Declaration{Producer: ProducerMain})
	defer second.Close()
	defer w.Close()
	if _, err := r.Header(); !errors.Is(err, ErrNotRing) {
		t.Errorf("replaced file: %v", err)
	}
}

func TestRingNames(t *testing.T) {
	if pid, ticks, ok := ParseRingName(RingName(12, 34567)); !ok || pid != 12 || ticks != 34567 {
		t.Errorf("got %d, %d, %v", pid, ticks, ok)
	}
	if pid, ticks, ok := ParseRingName(NextRingName(12, 34567, 3)); !ok || pid != 12 || ticks != 34567 {
		t.Errorf("a further one: got %d, %d, %v", pid, ticks, ok)
	}
	for _, name := range []string{"ring-1-2-1.dwr", "ring-1-2-02.dwr", "ring-1-2-3-4.dwr", "ring-1-2-.dwr", "ring-1-2.dwr.tmp", "ring--1-2.dwr", "ring-0-2.dwr", "ring-1.dwr", "ring-01-2.dwr", "ring-1-99999999999999999999.dwr", ""} {
		if _, _, ok := ParseRingName(name); ok {
			t.Errorf("%q was taken for a ring", name)
		}
	}
}

// FuzzRing reads arbitrary bytes as a ring, accessors included, and checks what every reader relies on: visited + lost +
// torn is the head, and no record is visited that is not whole.
func FuzzRing(f *testing.F) {
	path, w := newRing(f, 4)
	writeNumbers(f, w, 1, 9)
	w.Note(ClockNote{1, 2})
	w.Close()
	valid, _ := os.ReadFile(path)
	f.Add(valid[:RingNotesAt+300], valid[RingHeaderBytes:], true)
	f.Add(valid[:200], []byte{}, false)
	f.Fuzz(func(t *testing.T, head, records []byte, live bool) {
		content := make([]byte, RingHeaderBytes, RingHeaderBytes+len(records))
		copy(content, head)
		path := filepath.Join(t.TempDir(), RingName(1, 1))
		if err := os.WriteFile(path, append(content, records...), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRing(path)
		if err != nil {
			return
		}
		defer r.Close()
		drainBoth(t, r, live)
	})
}

func drainBoth(t *testing.T, r *Ring, live bool) {
	seen := uint64(0)
	count := func(records []Record) error {
		for i := range records {
			if !records[i].Whole() {
				t.Fatal("a torn record was visited")
			}
			throughGo(&records[i])
		}
		seen += uint64(len(records))
		return nil
	}
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	if live {
		if err := drain(r)(count); err != nil {
			t.Fatal(err)
		}
	}
	if err := finish(r)(count); err != nil {
		t.Fatal(err)
	}
	if seen+r.Lost()+r.Torn() != h.Head {
		t.Fatalf("%d seen + %d lost + %d torn is not %d", seen, r.Lost(), r.Torn(), h.Head)
	}
	var n Notes
	notes, err := r.Notes(headerOf(t, r))
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range notes {
		n.Add(note)
	}
	if _, err := r.Totals(); err != nil {
		t.Fatal(err)
	}
}

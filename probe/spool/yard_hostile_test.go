package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// Whatever is written into a ring of a yard, one poll looks at a bounded number of records of one user, and others get their turn.
func TestYardBoundsWhatOneUserCosts(t *testing.T) {
	f := newField(t, YardOptions{UserTakes: 50})
	var liars []*os.File
	for i := range 8 {
		file, err := os.OpenFile(f.ring("liar", i+1, 0), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		liars = append(liars, file)
	}
	f.ring("good", 1, 9)
	looked := map[*ring]int{}
	for round := range 40 {
		for _, file := range liars {
			claim(t, file, uint64(1000*(round+1)))
		}
		f.poll()
		d := f.places["liar"].drainer
		if d.taken > 50+16 { // the last one's 16 may pass it
			t.Fatalf("%d records in one poll", d.taken)
		}
		for _, r := range d.rings {
			if r.polled == f.now {
				looked[r]++
			}
		}
	}
	if len(looked) != len(liars) {
		t.Errorf("only %d of %d rings ever had a turn", len(looked), len(liars))
	}
	for r, n := range looked {
		if n < 10 {
			t.Errorf("%s had %d turns of 40", r.path, n)
		}
	}
	if records := f.records("good"); records != 9 {
		t.Errorf("%d records of another job", records)
	}
}

func (f *field) records(folder string) (n int) {
	f.Helper()
	if err := f.out[folder].Scan(func(_ recording.StreamID, r []recording.Record) error { n += len(r); return nil }); err != nil {
		f.Fatal(err)
	}
	return n
}

// A file may claim to be as large as the format allows and hold nothing at all.
func TestYardRefusesRingsThatAreLargerThanTheHooks(t *testing.T) {
	f := newField(t, YardOptions{})
	path := f.ring("job", 1, 3)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const capacity = 1 << 22 // recording.maxCapacity
	if _, err := file.WriteAt([]byte{0, 0, capacity >> 16, 0}, 20); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(recording.RingHeaderBytes + capacity*recording.Size); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		f.poll()
	}
	if c := f.Counts(); c.Bad != 1 || c.Followed != 0 || !strings.Contains(fmt.Sprint(c.Why), "more than the hook's") {
		t.Errorf("%+v", c)
	}
}

func TestYardHearsNoAgentInARing(t *testing.T) {
	f := newField(t, YardOptions{})
	path := filepath.Join(f.mkdir("job"), recording.RingName(os.Getpid(), ownTicks(t)))
	w, err := recording.CreateRing(path, 16, recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abandon()
	for range 4 {
		f.poll()
	}
	if f.streams("job") != 0 || f.Counts().Bad != 1 {
		t.Errorf("%d streams, %+v", f.streams("job"), f.Counts())
	}
}

// The rings of one user are bounded over all folders; those of others are not touched by that.
func TestYardBoundsTheRingsOfOneUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	f := newField(t, YardOptions{UserRings: 5, MaxRings: 3})
	for _, folder := range []string{"a", "b", "c"} {
		for i := range 4 {
			f.ring(folder, i+1, 1)
		}
		if err := os.Chown(filepath.Join(f.dir, folder), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	f.ring("z", 1, 1)
	f.poll()
	f.poll()
	if c := f.Counts(); c.Followed != 6 || c.Waiting != 7 || f.streams("z") != 1 {
		t.Errorf("%+v", c)
	}
}

// Being out of files is the reader's trouble: no ring is given up for it.
func TestARingOutlivesAReaderThatIsOutOfFiles(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		r := &ring{}
		for range 100 {
			if !r.mayRecover(&os.PathError{Op: "open", Path: "ring", Err: err}) {
				t.Fatalf("given up for %v", err)
			}
		}
	}
	r := &ring{}
	for range ringTries - 1 {
		r.mayRecover(errors.New("?"))
	}
	if r.mayRecover(errors.New("?")) {
		t.Error("tried for ever")
	}
}

// A folder that stands still is not read again; one that changes is, at once.
func TestYardSeesARingInAFolderThatStoodStill(t *testing.T) {
	f := newField(t, YardOptions{})
	f.mkdir("job/uid-7")
	for range 5 {
		f.poll()
	}
	for _, folder := range []string{"job", "job/uid-7"} {
		if f.places[folder].drainer.steady < 2 {
			t.Fatalf("%s is read although nothing happens in it", folder)
		}
	}
	f.ring("job/uid-7", 1, 3)
	f.ring("job/uid-8", 1, 3)
	f.poll()
	if f.streams("job/uid-7") != 1 || f.streams("job/uid-8") != 1 {
		t.Errorf("%d and %d streams", f.streams("job/uid-7"), f.streams("job/uid-8"))
	}
}

// Thousands of folders whose jobs died long ago: all are followed, read, removed, and let go.
func TestYardOfThousandsOfDeadSpools(t *testing.T) {
	f := newField(t, YardOptions{Remove: true, Gone: func(Folder) bool { return true }, MaxFolders: 100, UserRings: 30})
	const many = 600
	for i := range many {
		f.deadRing(fmt.Sprint("job", i), 999999, 1)
	}
	for range 4 * many / 100 {
		f.poll()
		if len(f.places) > 100 {
			t.Fatalf("%d folders at once", len(f.places))
		}
		f.RemoveEnded()
	}
	read := 0
	for _, out := range f.out {
		read += len(out.Streams())
	}
	entries, _ := os.ReadDir(f.dir)
	if read != many || len(entries) != 0 || len(f.places) > 1 {
		t.Errorf("%d rings were read, %d folders are left, %d are followed", read, len(entries), len(f.places))
	}
}

// FuzzYardRing lets a yard read a ring of any bytes, which change under it.
func FuzzYardRing(f *testing.F) {
	dir := f.TempDir()
	w, err := recording.CreateRing(filepath.Join(dir, "ring-1-1.dwr"), 16, recording.Declaration{Producer: recording.ProducerMain, PID: 1})
	if err != nil {
		f.Fatal(err)
	}
	w.Write(recording.Step{Begin: 1, End: 2}.Encode())
	w.Abandon()
	whole, _ := os.ReadFile(filepath.Join(dir, "ring-1-1.dwr"))
	f.Add(whole[:4200], uint16(24), uint64(1<<40))
	f.Add(whole[:4200], uint16(32), uint64(1<<63))
	f.Add(whole[:100], uint16(20), uint64(1<<16))
	f.Fuzz(func(t *testing.T, head []byte, at uint16, value uint64) {
		dir := t.TempDir()
		path := filepath.Join(dir, "ring-1-1.dwr")
		if err := os.WriteFile(path, head, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Truncate(path, int64(recording.RingHeaderBytes+16*recording.Size))
		y, err := OpenYard(dir, YardOptions{Sink: func(Folder) (recording.Sink, bool) { return recording.NewMemory(recording.Manifest{}), true }, UserTakes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		defer y.Close()
		now := uint64(0)
		for range 4 {
			now += 2 * second
			if err := y.Poll(now); err != nil {
				t.Fatal(err)
			}
			if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
				var b [8]byte
				for i := range b {
					b[i] = byte(value >> (8 * i))
				}
				file.WriteAt(b[:], int64(at))
				file.Close()
			}
			y.Live()
			y.Counts()
		}
	})
}

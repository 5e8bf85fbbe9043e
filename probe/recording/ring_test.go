package recording

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// newRing makes a ring of a main process in a folder of its own.
func newRing(t testing.TB, capacity uint32) (path string, w *RingWriter) {
	t.Helper()
	path = filepath.Join(t.TempDir(), RingName(42, 7))
	w, err := CreateRing(path, capacity, Declaration{Producer: ProducerMain, PID: 42, StartTicks: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.f.Close() })
	return path, w
}

// numbered returns a record that can be recognised: both of its times follow from n.
func numbered(n uint64) Record {
	return Step{Begin: 1000 * n, End: 1000*n + 7, Step: uint32(n)}.Encode()
}

func writeNumbers(t testing.TB, w *RingWriter, from, to uint64) {
	t.Helper()
	for n := from; n <= to; n++ {
		if err := w.Write(numbered(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// drain and finish read the header first, as every caller does.
func drain(r *Ring) func(func([]Record) error) error {
	return func(visit func([]Record) error) error {
		h, err := r.Header()
		if err != nil {
			return err
		}
		return r.Drain(h, visit)
	}
}

func finish(r *Ring) func(func([]Record) error) error {
	return func(visit func([]Record) error) error {
		h, err := r.Header()
		if err != nil {
			return err
		}
		return r.Finish(h, visit)
	}
}

func headerOf(t testing.TB, r *Ring) RingHeader {
	t.Helper()
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// collect drains and returns the numbers of the records, checking that each is what was written under that number.
func collect(t testing.TB, drain func(func([]Record) error) error) (numbers []uint64) {
	t.Helper()
	err := drain(func(records []Record) error {
		for i := range records {
			r := &records[i]
			want := numbered(uint64(r.Step().Step))
			want.SetSeq(r.Seq())
			if *r != want || r.Step().Step != r.Seq() {
				t.Errorf("record %d is %+v", r.Seq(), r.Step())
			}
			numbers = append(numbers, uint64(r.Seq()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func expectRange(t testing.TB, got []uint64, from, to uint64) {
	t.Helper()
	if uint64(len(got)) != to-from+1 {
		t.Fatalf("got %v, want %d to %d", got, from, to)
	}
	for i, n := range got {
		if n != from+uint64(i) {
			t.Fatalf("got %v, want %d to %d", got, from, to)
		}
	}
}

func TestRingVector(t *testing.T) {
	v := loadVectors(t).Ring
	path := filepath.Join(t.TempDir(), RingName(42, 77))
	content := make([]byte, v.Bytes)
	for _, p := range v.Parts {
		copy(content[p.At:], unhex(t, p.Hex))
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	err = finish(r)(func(records []Record) error {
		for i := range records {
			got = append(got, hex.EncodeToString(records[i][:]))
		}
		return nil
	})
	if err != nil || len(got) != len(v.Records) || r.Lost() != v.Lost {
		t.Fatalf("%d records, %d lost, %v; want %d, %d", len(got), r.Lost(), err, len(v.Records), v.Lost)
	}
	for i := range got {
		if got[i] != v.Records[i] {
			t.Errorf("record %d is\n%s, want\n%s", i, got[i], v.Records[i])
		}
	}
	notes, err := r.Notes(headerOf(t, r))
	if err != nil || len(notes) != 1 || string(notes[0]) != v.Notes[1] {
		t.Errorf("notes %q, %v", notes, err)
	}
	if d := r.Declaration(); d.PID != 42 || d.Rank == nil || *d.Rank != 0 || d.Restart != nil || !d.Emulated {
		t.Errorf("declaration %+v", d)
	}
	if totals, err := r.Totals(); err != nil || totals[0].Wait != 102 {
		t.Errorf("totals %+v, %v", totals[0], err)
	}
}

func TestRingWriterWritesTheSpec(t *testing.T) {
	path, w := newRing(t, 4)
	writeNumbers(t, w, 1, 6)
	if err := w.UpdateTotals(40, func(t *Totals) { t.Fetches = 9 }); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	if len(b) != RingHeaderBytes+4*Size || !bytes.HasPrefix(b, []byte(RingMagic)) {
		t.Fatalf("%d bytes, starting %q", len(b), b[:8])
	}
	h, err := ParseRingHeader(b)
	if err != nil || h.Head != 6 || h.State != RingClosed || h.EpochLength != Unknown64 {
		t.Errorf("header %+v, %v", h, err)
	}
	if totals := ParseTotals(b[RingTotalsAt+31*TotalsBytes:]); totals.Fetches != 9 {
		t.Errorf("loader 40 is not in the last slot: %+v", totals)
	}
}

func TestDrainFollowsTheHead(t *testing.T) {
	path, w := newRing(t, 16)
	r, err := OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, drain(r)); len(got) != 0 {
		t.Fatalf("empty ring gave %v", got)
	}
	writeNumbers(t, w, 1, 5)
	expectRange(t, collect(t, drain(r)), 1, 5)
	writeNumbers(t, w, 6, 18) // wraps, laps nobody
	r.Release()
	expectRange(t, collect(t, drain(r)), 6, 18)
	if r.Lost() != 0 || r.Torn() != 0 {
		t.Errorf("lost %d, torn %d", r.Lost(), r.Torn())
	}
}

// A live ring of capacity 4 after ten records:
//
//	slot      0   1   2   3
//	number    9  10   7   8     the process may be writing number 11 into the slot of number 7
func TestAnOverrunIsCounted(t *testing.T) {
	path, w := newRing(t, 4)
	writeNumbers(t, w, 1, 10)
	live, _ := OpenRing(path)
	expectRange(t, collect(t, drain(live)), 8, 10)
	if live.Lost() != 7 {
		t.Errorf("live: lost %d, want 7", live.Lost())
	}
	dead, _ := OpenRing(path)
	expectRange(t, collect(t, finish(dead)), 7, 10)
	if dead.Lost() != 6 {
		t.Errorf("finished: lost %d, want 6", dead.Lost())
	}
}

func TestATornRecordNearTheHeadGetsASecondLook(t *testing.T) {
	path, w := newRing(t, 16)
	writeNumbers(t, w, 1, 5)
	whole := numbered(3)
	whole.SetSeq(3)
	torn := whole
	torn[60]++
	at := int64(RingHeaderBytes + 2*Size)
	w.f.WriteAt(torn[:], at)
	r, _ := OpenRing(path)
	expectRange(t, collect(t, drain(r)), 1, 2)
	w.f.WriteAt(whole[:], at)
	expectRange(t, collect(t, drain(r)), 3, 5)
	if r.Torn() != 0 {
		t.Errorf("torn %d, want 0: it was whole at the second look", r.Torn())
	}

	w.f.WriteAt(torn[:], at)
	again, _ := OpenRing(path)
	expectRange(t, collect(t, drain(again)), 1, 2)
	expectRange(t, collect(t, drain(again)), 4, 5)
	if again.Torn() != 1 {
		t.Errorf("torn %d, want 1", again.Torn())
	}
}

func TestAnErrorOfTheVisitorEndsTheDrain(t *testing.T) {
	path, w := newRing(t, 16)
	writeNumbers(t, w, 1, 5)
	r, _ := OpenRing(path)
	stop := errors.New("stop")
	if err := drain(r)(func([]Record) error { return stop }); err != stop {
		t.Errorf("Drain returned %v", err)
	}
}

// TestDrainBesideAWriter maps a small ring and laps the reader all the time, with the body written first and the numbers
// last, as a producer without a single store does. Whatever is visited must be whole, and every number accounted for.
func TestDrainBesideAWriter(t *testing.T) {
	const capacity, total = 64, 200_000
	path, w := newRing(t, capacity)
	m, err := syscall.Mmap(int(w.f.Fd()), 0, RingHeaderBytes+capacity*Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Skip("no shared mapping here: ", err)
	}
	defer syscall.Munmap(m)
	r, _ := OpenRing(path)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := uint64(1); n <= total; n++ {
			rec := numbered(n)
			rec.SetSeq(uint32(n))
			slot := m[RingHeaderBytes+(n-1)%capacity*Size:][:Size]
			copy(slot[4:60], rec[4:60])
			copy(slot[60:], rec[60:])
			copy(slot[:4], rec[:4])
			copy(m[24:32], RingHeader{Head: n}.Encode()[24:32])
		}
	}()
	seen := uint64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		seen += uint64(len(collect(t, drain(r))))
	}
	seen += uint64(len(collect(t, finish(r))))
	if seen+r.Lost()+r.Torn() != total {
		t.Errorf("%d seen + %d lost + %d torn is not %d", seen, r.Lost(), r.Torn(), total)
	}
	t.Logf("seen %d, lost %d, torn %d", seen, r.Lost(), r.Torn())
}

func TestRingNotes(t *testing.T) {
	path, w := newRing(t, 4)
	r, _ := OpenRing(path)
	for i := range 3 {
		if err := w.Note(ClockNote{Monotonic: uint64(i), Realtime: 1}); err != nil {
			t.Fatal(err)
		}
		notes, err := r.Notes(headerOf(t, r))
		if err != nil || len(notes) != 1 {
			t.Fatalf("call %d gave %q, %v", i, notes, err)
		}
	}
	if err := w.appendNote([]byte("[1]\nnot json\n{\"note\":\"phase\"}")); err != nil {
		t.Fatal(err)
	}
	notes, err := r.Notes(headerOf(t, r))
	if err != nil || len(notes) != 1 || r.BadNotes() != 2 {
		t.Errorf("notes %q, bad %d, %v", notes, r.BadNotes(), err)
	}
	big := HookErrorNote{Error: string(bytes.Repeat([]byte("x"), RingMaxNotes))}
	if err := w.Note(big); err != nil {
		t.Fatal(err)
	}
	if h, _ := r.Header(); h.NotesDropped != 1 {
		t.Errorf("dropped %d, want 1", h.NotesDropped)
	}
}

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/unit"
)

var _ Sink = (*Writer)(nil)

func create(t testing.TB, o Options) (dir string, w *Writer) {
	t.Helper()
	dir = t.TempDir()
	w, err := Create(dir, Manifest{Host: "node1", Command: []string{"python", "train.py"}, StartedMonotonic: 5}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.segment.Close() })
	return dir, w
}

func openOne(t testing.TB, dir string) Reader {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes()) != 1 || len(r.Readers()) != 1 {
		t.Fatalf("%d nodes, want 1", len(r.Nodes()))
	}
	return r.Readers()[0]
}

// content is what a Reader gives back, in a form that compares.
type content struct {
	Streams []Stream
	Records map[StreamID][]byte
	damage  Damage // of opening and reading
}

func (c content) count(id StreamID) int { return len(c.Records[id]) / Size }

func contentOf(t testing.TB, r Reader) content {
	t.Helper()
	c := content{Streams: r.Streams(), Records: map[StreamID][]byte{}}
	d, err := Scan(r, func(id StreamID, records []Record) error {
		c.Records[id] = append(c.Records[id], bytesOf(records)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.damage = r.Damage().Add(d)
	return c
}

func sameContent(t testing.TB, a, b content) bool {
	t.Helper()
	return reflect.DeepEqual(a.Streams, b.Streams) && maps.EqualFunc(a.Records, b.Records, bytes.Equal)
}

// tell makes a random but sound story and tells it to every sink.
func tell(t testing.TB, seed uint64, events int, sinks ...Sink) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	next := map[StreamID]uint32{}
	all := func(what func(Sink) error) {
		for _, s := range sinks {
			if err := what(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range events {
		switch choice := random.IntN(10); {
		case len(next) == 0 || choice == 0 && len(next) < 40:
			id := StreamID(len(next) + 1)
			next[id] = 1
			all(func(s Sink) error {
				_, err := s.Declare(Declaration{Producer: ProducerWorker, PID: int(id)})
				return err
			})
		case choice == 1:
			id := StreamID(1 + random.IntN(len(next)))
			note := EncodeNote(ClockNote{Monotonic: random.Uint64(), Realtime: random.Uint64()})
			all(func(s Sink) error { return s.Note(id, note) })
		default:
			id := StreamID(1 + random.IntN(len(next)))
			records := make([]Record, random.IntN(700))
			for i := range records {
				records[i] = Fetch{Enter: random.Uint64(), Batch: random.Uint32()}.Encode()
				records[i].SetSeq(next[id])
				next[id]++
			}
			all(func(s Sink) error { return s.Records(id, records) })
		}
	}
}

// A job may start workers all its life: of those that ended the writer keeps next to nothing.
func TestAnEndedStreamIsForgotten(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, Manifest{Host: "h"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		id, err := w.Declare(Declaration{Producer: ProducerWorker, PID: i + 1})
		record := Step{Begin: 1, End: 2}.Encode()
		record.SetSeq(1)
		if err == nil {
			err = w.Records(id, []Record{record})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.End(id) // before its records are written
		if i < 2 {
			continue
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if w.Note(id, EncodeNote(ClockNote{1, 2})) == nil {
			t.Error("a note came after the end, and was taken")
		}
	}
	if err := w.Close(Ending{At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for i, s := range w.streams {
		if s.declaration != nil || s.gathered != nil {
			t.Errorf("of stream %d is left %+v", i+1, s)
		}
	}
	r, records := openOne(t, dir), 0
	if _, err := Scan(r, func(_ StreamID, some []Record) error { records += len(some); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(r.Streams()) != 3 || records != 3 || !r.Damage().Clean() {
		t.Errorf("%d streams, %d records, %v", len(r.Streams()), records, r.Damage())
	}
}

func TestWhatWasWrittenIsReadAgain(t *testing.T) {
	for seed := range uint64(5) {
		dir, w := create(t, Options{SegmentBytes: 100_000})
		memory := NewMemory(Manifest{})
		tell(t, seed, 60, w, memory)
		if err := w.Close(Ending{By: EndedByCommand}); err != nil {
			t.Fatal(err)
		}
		r := openOne(t, dir)
		got, want := contentOf(t, r), contentOf(t, memory)
		if !sameContent(t, got, want) {
			t.Fatalf("seed %d: what was read differs from what was written", seed)
		}
		if again := contentOf(t, r); !sameContent(t, again, want) {
			t.Fatalf("seed %d: the second scan differs", seed)
		}
		if !got.damage.Clean() {
			t.Errorf("seed %d: %v", seed, got.damage)
		}
		if files, _ := segmentFiles(w.Dir()); len(files) < 2 {
			t.Errorf("seed %d: %d segments, want several", seed, len(files))
		}
	}
}

func TestTheManifestTellsTheEnding(t *testing.T) {
	dir, w := create(t, Options{})
	if m := openOne(t, dir).Manifest(); m.EndedAt.IsKnown() || m.Host != "node1" || m.StartedMonotonic != 5 {
		t.Errorf("while it runs: %+v", m)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := w.Close(Ending{At: at, Monotonic: 9, By: EndedBySignal, Signal: unit.Some("SIGTERM"), Hook: HookSummary{true, 3}, Warnings: []string{"w"}})
	if err != nil {
		t.Fatal(err)
	}
	m := openOne(t, dir).Manifest()
	end, _ := m.EndedAt.Get()
	by, _ := m.EndedBy.Get()
	signal, _ := m.Signal.Get()
	if !end.Equal(at) || by != EndedBySignal || signal != "SIGTERM" || m.ExitCode.IsKnown() || m.Hook.Spools != 3 || len(m.Warnings) != 1 {
		t.Errorf("at the end: %+v", m)
	}
	b, _ := os.ReadFile(filepath.Join(w.Dir(), manifestName))
	for _, want := range []string{`"exit_code": null`, `"options": {}`, `"format": "datawait.recording/1"`, `"ended_monotonic": 9`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("manifest lacks %s:\n%s", want, b)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.Dir(), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestASecondRecordingInOnePlaceIsRefused(t *testing.T) {
	dir, w := create(t, Options{})
	w.Close(Ending{})
	if _, err := Create(dir, Manifest{Host: "node1"}, Options{}); err == nil {
		t.Error("the node was written over")
	}
	if _, err := Create(dir, Manifest{Host: "../node/2"}, Options{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node-.._node_2")); err != nil {
		t.Error(err)
	}
	if r, err := Open(dir); err != nil || len(r.Nodes()) != 2 {
		t.Errorf("got %v, %v", r, err)
	}
}

// TestATornTailAtEveryByte cuts a segment everywhere: whatever stands before the last whole frame is read, and the cut is
// counted unless it falls between two frames.
func TestATornTailAtEveryByte(t *testing.T) {
	dir, w := create(t, Options{})
	id, _ := w.Declare(Declaration{Producer: ProducerMain})
	boundary := map[int64]int{w.size: 0}
	for n := range 3 {
		r := numbered(uint64(n + 1))
		r.SetSeq(uint32(n + 1))
		w.Records(id, []Record{r})
		w.Flush()
		boundary[w.size] = n + 1
	}
	w.Close(Ending{})
	path := filepath.Join(w.Dir(), segmentName(1))
	whole, _ := os.ReadFile(path)
	for cut := len(whole); cut >= 0; cut-- {
		os.Truncate(path, int64(cut))
		r := openOne(t, dir)
		c := contentOf(t, r)
		got, want := c.count(1), 0
		for at, n := range boundary {
			if at <= int64(cut) {
				want = max(want, n)
			}
		}
		_, clean := boundary[int64(cut)]
		clean = clean || cut == SegmentHeaderBytes
		if got != want || c.damage.Clean() != clean || !clean && c.damage != (Damage{TornTails: 1}) {
			t.Errorf("cut at %d: %d records, want %d; %v", cut, got, want, c.damage)
		}
	}
}

func TestABadFrameCostsOnlyItself(t *testing.T) {
	frames := func(t *testing.T, body func([]byte) []byte) Reader {
		dir, w := create(t, Options{})
		id, _ := w.Declare(Declaration{Producer: ProducerMain})
		for n := range 3 {
			r := numbered(uint64(n + 1))
			r.SetSeq(uint32(n + 1))
			w.Records(id, []Record{r})
			w.Flush()
		}
		w.Close(Ending{})
		path := filepath.Join(w.Dir(), segmentName(1))
		b, _ := os.ReadFile(path)
		os.WriteFile(path, body(b), 0o600)
		return openOne(t, dir)
	}
	const last = FrameHeaderBytes + Size // bytes of the last frame
	for _, c := range []struct {
		name    string
		change  func(b []byte) []byte
		records int
		damage  Damage
	}{
		{"flipped bit in a record", func(b []byte) []byte { b[len(b)-last-1] ^= 1; return b }, 2, Damage{BadFrames: 1}},
		{"flipped bit in the declaration", func(b []byte) []byte { b[40] ^= 1; return b }, 0, Damage{BadFrames: 1, Undeclared: 3}},
		{"impossible length", func(b []byte) []byte { b[len(b)-2*last+3] = 0xff; return b }, 1, Damage{BadFrames: 1}},
		{"unknown type", func(b []byte) []byte { b[len(b)-2*last+4] = 9; return b }, 2, Damage{UnknownFrames: 1}},
		{"not a multiple of 64", func(b []byte) []byte { return AppendFrame(b, FrameRecords, 1, make([]byte, 65)) }, 3, Damage{BadFrames: 1}},
		{"undeclared stream", func(b []byte) []byte { return AppendFrame(b, FrameRecords, 7, make([]byte, 64)) }, 3, Damage{Undeclared: 1}},
		{"undeclared note", func(b []byte) []byte { return AppendFrame(b, FrameNote, 7, []byte("{}")) }, 3, Damage{Undeclared: 1}},
		{"bad note", func(b []byte) []byte { return AppendFrame(b, FrameNote, 1, []byte("{}")) }, 3, Damage{BadNotes: 1}},
		{"stream 0", func(b []byte) []byte { return AppendFrame(b, FrameDeclaration, 0, []byte(`{"producer":"main"}`)) }, 3, Damage{BadFrames: 1}},
		{"zeros behind the end", func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, 3, Damage{TornTails: 1}},
		{"empty frames", func(b []byte) []byte { return AppendFrame(b, FrameRecords, 1, nil) }, 3, Damage{}},
	} {
		got := contentOf(t, frames(t, c.change))
		if got.count(1) != c.records || got.damage != c.damage {
			t.Errorf("%s: %d records, %v; want %d, %v", c.name, got.count(1), got.damage, c.records, c.damage)
		}
	}
}

// fullDisk accepts a number of bytes and then fails, writing what still fits, as write(2) does.
type fullDisk struct {
	*os.File
	left int
}

func (f *fullDisk) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return f.File.Write(b)
	}
	n, _ := f.File.Write(b[:f.left])
	f.left = 0
	return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
}

func TestAFullDiskEndsTheRecordingNotTheRun(t *testing.T) {
	for _, room := range []int{20, 5000, 150_000} {
		dir, w := create(t, Options{createSegment: func(path string) (segmentFile, error) {
			f, err := os.Create(path)
			return &fullDisk{f, room}, err
		}})
		id, _ := w.Declare(Declaration{Producer: ProducerMain})
		var err error
		for n := uint32(1); err == nil && n < 1_000_000; n++ {
			r := numbered(uint64(n))
			r.SetSeq(n)
			if err = w.Records(id, []Record{r}); err == nil && n%50 == 0 {
				err = w.Flush()
			}
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "stays readable") {
			t.Fatalf("room %d: %v", room, err)
		}
		if again := w.Records(id, []Record{{}}); again != err || w.Err() != err {
			t.Errorf("room %d: the next write gives %v", room, again)
		}
		if cerr := w.Close(Ending{By: EndedByCommand}); !errors.Is(cerr, syscall.ENOSPC) {
			t.Errorf("room %d: Close gives %v", room, cerr)
		}
		r := openOne(t, dir)
		if !r.Damage().Clean() || len(r.Manifest().Warnings) != 1 {
			t.Errorf("room %d: %v, warnings %q", room, r.Damage(), r.Manifest().Warnings)
		}
		if m := r.Manifest(); m.EndedAt.IsKnown() || m.EndedMonotonic.IsKnown() || m.EndedBy.Or("") != EndedByCommand {
			t.Errorf("room %d: the recording says that it reaches the run's end: %+v", room, m)
		}
		if got := contentOf(t, r).count(1); room > 1000 && got < room/Size/2 {
			t.Errorf("room %d: only %d records", room, got)
		}
	}
}

func TestWriterRefusesWhatItCannotWrite(t *testing.T) {
	_, w := create(t, Options{})
	if w.Records(1, nil) == nil || w.Note(0, nil) == nil {
		t.Error("an undeclared stream was accepted")
	}
	id, _ := w.Declare(Declaration{Producer: ProducerMain})
	if w.Note(id, json.RawMessage(make([]byte, MaxFrameBody+1))) == nil {
		t.Error("a note longer than a frame was accepted")
	}
	if w.Records(id, []Record{numbered(1)}) != nil {
		t.Error("the writer is broken after a refused note")
	}
}

func TestManyShortStreamsShareBuffers(t *testing.T) {
	_, w := create(t, Options{})
	for n := range 3000 {
		id, err := w.Declare(Declaration{Producer: ProducerWorker, PID: n})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Records(id, make([]Record, 20)); err != nil {
			t.Fatal(err)
		}
		if n%100 == 0 {
			w.Flush()
		}
	}
	w.Flush()
	if len(w.spare) > spareBuffers || w.pending != 0 || len(w.dirty) != 0 {
		t.Errorf("%d spare buffers, %d bytes pending, %d dirty", len(w.spare), w.pending, len(w.dirty))
	}
}

func TestOpenTellsWhatAFolderIs(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string)
		want error
	}{
		{"an empty folder", func(*testing.T, string) {}, ErrNotRecording},
		{"an empty node", func(_ *testing.T, dir string) { os.Mkdir(filepath.Join(dir, "node-a"), 0o700) }, ErrNotRecording},
		{"a source tree", func(_ *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o600) }, ErrNotRecording},
		{"another manifest", func(_ *testing.T, dir string) { putManifest(dir, `{"format":"npm/1"}`) }, ErrNotRecording},
		{"a manifest of garbage", func(_ *testing.T, dir string) { putManifest(dir, `{{{`) }, ErrNotRecording},
		{"a manifest alone", func(_ *testing.T, dir string) { putManifest(dir, `{"format":"datawait.recording/1","host":7}`) }, nil},
		{"a newer manifest", func(_ *testing.T, dir string) { putManifest(dir, `{"format":"datawait.recording/2"}`) }, ErrNewer},
		{"a newer segment", func(_ *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, segmentName(1)), []byte(SegmentMagic+"\x02\x00\x00\x00\x00\x00\x00\x00"), 0o600)
		}, ErrNewer},
		{"a segment alone", func(_ *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, segmentName(1)), segmentHeader(), 0o600)
		}, nil},
	} {
		dir := t.TempDir()
		c.make(t, dir)
		if _, err := Open(dir); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := Open("segment_test.go"); !errors.Is(err, ErrNotRecording) {
		t.Errorf("a file: %v", err)
	}
}

func putManifest(dir, text string) {
	os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o600)
}

func TestAnAgentThatWasKilled(t *testing.T) {
	dir, w := create(t, Options{})
	id, _ := w.Declare(Declaration{Producer: ProducerMain})
	r := numbered(1)
	r.SetSeq(1)
	w.Records(id, []Record{r})
	w.Flush()
	os.Remove(filepath.Join(w.Dir(), manifestName))
	reader := openOne(t, dir)
	if contentOf(t, reader).count(1) != 1 || reader.Manifest().Format != "" {
		t.Errorf("manifest %+v", reader.Manifest())
	}
	putManifest(w.Dir(), "half a mani")
	if d := openOne(t, dir).Damage(); d != (Damage{BadFiles: 1}) {
		t.Errorf("with half a manifest: %v", d)
	}
	os.WriteFile(filepath.Join(w.Dir(), segmentName(2)), []byte("what is this, a segment?"), 0o600)
	syscall.Mkfifo(filepath.Join(w.Dir(), segmentName(3)), 0o600)
	if d := openOne(t, dir).Damage(); d != (Damage{BadFiles: 3}) {
		t.Errorf("with two files that are none: %v", d)
	}
}

func TestABareSpoolIsARecording(t *testing.T) {
	path, w := newRing(t, 4)
	writeNumbers(t, w, 1, 6)
	w.Note(PhaseNote{T: 1, Phase: "observe"})
	w.UpdateTotals(2, func(t *Totals) { *t = Totals{Fetches: 6, Wait: 60, Between: Unknown64} })
	w.Close()
	dir := filepath.Dir(path)
	os.WriteFile(filepath.Join(dir, RingName(9, 9)), []byte("garbage"), 0o600)

	r := openOne(t, dir)
	c := contentOf(t, r)
	if len(c.Streams) != 1 || c.count(1) != 4 || c.Streams[0].Declaration.PID != 42 {
		t.Fatalf("got %+v", c)
	}
	n := c.Streams[0].Notes
	if len(n.Phases) != 1 || len(n.Sums) != 1 || n.Sums[0].Loader != 2 || n.Sums[0].BetweenNS.IsKnown() || n.Sums[0].WaitNS.Or(0) != 60 {
		t.Errorf("notes %+v", n)
	}
	if c.damage != (Damage{Lost: 2, BadFiles: 1}) {
		t.Errorf("damage %v", c.damage)
	}
	stop := errors.New("stop")
	if _, err := r.Stream(1, func([]Record) error { return stop }); err != stop {
		t.Errorf("Stream returned %v", err)
	}
}

func TestStreamsAreReadAtOnceAndLikeOneAfterTheOther(t *testing.T) {
	dir, w := create(t, Options{SegmentBytes: 100_000})
	tell(t, 3, 200, w)
	w.Close(Ending{})
	r := openOne(t, dir)
	want := contentOf(t, r)
	got := make([][]byte, len(r.Streams()))
	var readers sync.WaitGroup
	for i, s := range r.Streams() {
		readers.Go(func() {
			r.Stream(s.ID, func(records []Record) error {
				got[i] = append(got[i], bytesOf(records)...)
				return nil
			})
		})
	}
	readers.Wait()
	for i, s := range r.Streams() {
		if !bytes.Equal(got[i], want.Records[s.ID]) {
			t.Errorf("stream %d differs", s.ID)
		}
	}
}

func TestStreamsAreReadTogetherAsOneByOne(t *testing.T) {
	for seed := range uint64(5) {
		_, w := create(t, Options{SegmentBytes: 500_000})
		tell(t, seed, 200, w)
		w.Close(Ending{})
		r := openOne(t, filepath.Dir(w.Dir()))
		for _, cut := range []int{0, 1, 100, 30_000} { // bytes that get lost after it was opened, and one in the middle that is wrong
			if path := filepath.Join(w.Dir(), segmentName(1)); cut > 0 {
				b, _ := os.ReadFile(path)
				b[len(b)/2] ^= 1
				os.WriteFile(path, b[:len(b)-cut], 0o600)
			}
			want := contentOf(t, r)
			var ids []StreamID
			for i, s := range r.Streams() {
				if i%3 != 1 {
					ids = append(ids, s.ID)
				} else {
					delete(want.Records, s.ID)
				}
			}
			alone := Damage{}
			for _, id := range ids {
				d, _ := r.Stream(id, func([]Record) error { return nil })
				alone = alone.Add(d)
			}
			got := map[StreamID][]byte{}
			damage, err := Together(r, ids, func(id StreamID, records []Record) error {
				got[id] = append(got[id], bytesOf(records)...)
				return nil
			})
			if err != nil || !maps.EqualFunc(got, want.Records, bytes.Equal) || damage != alone {
				t.Fatalf("seed %d, cut by %d: %d streams, want %d; %v, want %v; %v", seed, cut, len(got), len(want.Records), damage, alone, err)
			}
		}
		if _, err := Together(r, []StreamID{1, 2}, func(StreamID, []Record) error { return io.ErrClosedPipe }); err != io.ErrClosedPipe {
			t.Errorf("the visitor's error came back as %v", err)
		}
	}
}

func TestASegmentThatChangesAfterItWasOpened(t *testing.T) {
	_, w := create(t, Options{})
	id, _ := w.Declare(Declaration{Producer: ProducerMain})
	for seq := range uint32(3) {
		good := Mark{Begin: 1}.Encode()
		good.SetSeq(seq + 1)
		w.Records(id, []Record{good})
		w.Flush()
	}
	w.Close(Ending{})
	r := openOne(t, filepath.Dir(w.Dir()))
	path := filepath.Join(w.Dir(), segmentName(1))
	b, _ := os.ReadFile(path)
	b[len(b)-2*(FrameHeaderBytes+Size)+8] ^= 1 // the second frame is another stream's now
	os.WriteFile(path, b[:len(b)-1], 0o600)    // and the third is cut
	if c := contentOf(t, r); c.count(id) != 1 || c.damage != (Damage{BadFrames: 1, TornTails: 1}) {
		t.Errorf("%d records, %v", c.count(id), c.damage)
	}
}

// TestFramesOfAllSizesAreFound: side by side, far apart and larger than what is read at once.
func TestFramesOfAllSizesAreFound(t *testing.T) {
	for _, sizes := range [][]int{{1, 1, 1}, {1, 100_000, 1, 1}, {4000, 1, 4096, 5000, 0, 7}, {100, 20_000, 100, 20_000}} {
		dir := t.TempDir()
		b := AppendFrame(segmentHeader(), FrameDeclaration, 1, []byte(`{"producer":"main"}`))
		b = AppendFrame(b, FrameDeclaration, 2, []byte(`{"producer":"worker"}`))
		want := [3]int{}
		for round := range 30 {
			for i, n := range sizes {
				id := StreamID(1 + (i+round)%2)
				records := make([]Record, n)
				for k := range records {
					records[k] = Mark{Begin: uint64(want[id] + k)}.Encode()
					records[k].SetSeq(uint32(want[id] + k + 1))
				}
				want[id] += n
				b = AppendFrame(b, FrameRecords, id, bytesOf(records))
			}
		}
		os.WriteFile(filepath.Join(dir, segmentName(1)), b, 0o600)
		seen := [3]int{}
		damage, err := Scan(openOne(t, dir), func(id StreamID, records []Record) error {
			for i := range records {
				if int(records[i].Mark().Begin) != seen[id] {
					t.Fatalf("%v: stream %d: record %d is %d", sizes, id, seen[id], records[i].Mark().Begin)
				}
				seen[id]++
			}
			return nil
		})
		if err != nil || !damage.Clean() || seen != want {
			t.Errorf("%v: %v records, want %v; %v, %v", sizes, seen, want, damage, err)
		}
	}
}

func TestDamageNamesEveryCount(t *testing.T) {
	var d Damage
	v := reflect.ValueOf(&d).Elem()
	for i := range v.NumField() {
		v.Field(i).SetUint(uint64(i + 1))
	}
	if text := d.String(); strings.Count(text, ",")+1 != v.NumField() {
		t.Errorf("%q does not name %d counts", text, v.NumField())
	}
	double := reflect.ValueOf(d.Add(d))
	for i := range double.NumField() {
		if double.Field(i).Uint() != uint64(2*(i+1)) {
			t.Errorf("Add forgets %s", v.Type().Field(i).Name)
		}
	}
	if s := fmt.Sprint(Damage{}); s != "no damage" {
		t.Error(s)
	}
}

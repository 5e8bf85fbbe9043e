package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

const second = uint64(1e9)

// job is a spool folder with processes in it, and a drainer that watches it.
type job struct {
	*testing.T
	dir    string
	dead   map[int]bool
	memory *recording.Memory
	now    uint64 // ns, for tests that let time go on
	*Drainer
}

func newJob(t *testing.T, o Options) *job {
	j := &job{T: t, dir: t.TempDir(), dead: map[int]bool{}, memory: recording.NewMemory(recording.Manifest{})}
	if o.Alive == nil {
		o.Alive = func(pid int, ticks uint64) bool { return !j.dead[pid] && ticks == uint64(10*pid) }
	}
	j.Drainer = Watch(j.dir, j.memory, o)
	t.Cleanup(func() { j.Close() })
	return j
}

func (j *job) path(pid int) string {
	return filepath.Join(j.dir, recording.RingName(pid, uint64(10*pid)))
}

func (j *job) start(pid int, producer recording.Producer, rank int) *recording.RingWriter {
	j.Helper()
	w, err := recording.CreateRing(j.path(pid), 16, recording.Declaration{Producer: producer, PID: pid, Rank: &rank})
	if err != nil {
		j.Fatal(err)
	}
	j.Cleanup(func() { w.Abandon() })
	return w
}

func (j *job) poll(now uint64) {
	j.Helper()
	if err := j.Poll(now); err != nil {
		j.Fatal(err)
	}
}

// write puts n records into the ring.
func write(t *testing.T, w *recording.RingWriter, n int) {
	t.Helper()
	for range n {
		if err := w.Write(recording.Step{Begin: 1, End: 2}.Encode()); err != nil {
			t.Fatal(err)
		}
	}
}

// drained returns the stream of a process and how many of its records are in the sink.
func (j *job) drained(pid int) (s recording.Stream, records int) {
	j.Helper()
	for _, stream := range j.memory.Streams() {
		if stream.Declaration.PID == pid {
			s = stream
		}
	}
	err := j.memory.Scan(func(id recording.StreamID, r []recording.Record) error {
		if id == s.ID {
			records += len(r)
		}
		return nil
	})
	if err != nil {
		j.Fatal(err)
	}
	return s, records
}

func TestARingIsFollowedToItsEnd(t *testing.T) {
	j := newJob(t, Options{})
	j.poll(1) // nothing there yet
	w := j.start(7, recording.ProducerMain, 0)
	write(t, w, 3)
	j.poll(2)
	if _, n := j.drained(7); n != 3 {
		t.Fatalf("%d records, want 3", n)
	}
	write(t, w, 5)
	w.Note(recording.PhaseNote{T: 1, Phase: "observe"})
	w.UpdateTotals(0, func(t *recording.Totals) { t.Fetches, t.Wait = 8, 80 })
	w.Update(func(h *recording.RingHeader) { h.Monotonic, h.Realtime = 50, 60 })
	w.Close()
	j.poll(3)
	s, n := j.drained(7)
	if n != 8 || j.Counts().Ended != 0 { // this poll saw it close; the next one is sure that nothing follows
		t.Fatalf("%d records, %+v", n, j.Counts())
	}
	j.poll(4)
	s, n = j.drained(7)
	if n != 8 || len(s.Notes.Phases) != 1 || len(s.Notes.Sums) != 1 || s.Notes.Sums[0].WaitNS.Or(0) != 80 {
		t.Errorf("%d records, notes %+v", n, s.Notes)
	}
	if len(s.Notes.Lost) != 1 || s.Notes.Lost[0] != (recording.LostNote{}) {
		t.Errorf("lost notes %+v, want one that says nothing was lost", s.Notes.Lost)
	}
	if len(s.Notes.Clocks) != 1 || s.Notes.Clocks[0].Realtime != 60 {
		t.Errorf("clock notes %+v, want the header's newest pair", s.Notes.Clocks)
	}
	j.poll(5 * second) // done for good
	if c := j.Counts(); c.Ended != 1 || c.Mains != 1 || c.Bad != 0 || len(j.memory.Streams()) != 1 {
		t.Errorf("%+v, %d streams", c, len(j.memory.Streams()))
	}
	if _, err := os.Stat(j.path(7)); err != nil {
		t.Error("the ring was removed: ", err)
	}
}

// Sixteen records fit: at 80 a second the ring lasts a fifth of a second, at 5 a second three.
func TestARingThatWillBeOverrunSoonIsSaidToFill(t *testing.T) {
	j := newJob(t, Options{})
	w := j.start(7, recording.ProducerMain, 0)
	for i, step := range []struct {
		after, records int // ms, and how many came in that time
		filling        bool
	}{{200, 5, true}, {200, 1, false}, {200, 16, true}, {25, 2, true}, {25, 0, false}, {200, 1, false}} {
		write(t, w, step.records)
		j.now += uint64(step.after) * 1e6
		j.poll(j.now)
		if j.Filling() != step.filling {
			t.Errorf("poll %d: %d records in %d ms: filling %v", i, step.records, step.after, j.Filling())
		}
	}
	w.Close()
	j.poll(j.now + 1e6)
	if j.poll(j.now + 2e6); j.Filling() {
		t.Error("a ring that is read to its end still fills")
	}
}

func TestAKilledProcessGetsItsFinalDrain(t *testing.T) {
	j := newJob(t, Options{})
	w := j.start(7, recording.ProducerWorker, 0)
	write(t, w, 16)
	j.poll(1)
	if _, n := j.drained(7); n != 15 {
		t.Fatalf("%d records while it lives, want 15: it may be writing over the oldest", n)
	}
	write(t, w, 20) // laps the reader, then dies
	j.dead[7] = true
	j.poll(2) // too early to look at the process again
	j.poll(2 * second)
	s, n := j.drained(7)
	if j.Counts().Ended != 1 || len(s.Notes.Lost) == 0 {
		t.Fatalf("%+v, notes %+v", j.Counts(), s.Notes)
	}
	lost := uint64(0)
	for _, l := range s.Notes.Lost {
		lost += l.Records
	}
	if uint64(n)+lost != 36 || j.Counts().Lost != lost {
		t.Errorf("%d drained and %d lost are not 36", n, lost)
	}
}

func TestALaterProcessWithTheSameNumberIsNotTheSame(t *testing.T) {
	j := newJob(t, Options{})
	w, err := recording.CreateRing(filepath.Join(j.dir, recording.RingName(7, 1)), 16, recording.Declaration{Producer: recording.ProducerMain, PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abandon()
	j.poll(1)
	if j.Counts().Ended != 1 {
		t.Errorf("%+v", j.Counts())
	}
}

// again makes a further ring of the same process, which replaced its program (execve) and counts from 1 again.
func (j *job) again(pid, n int, d recording.Declaration) *recording.RingWriter {
	j.Helper()
	d.Producer, d.PID = recording.ProducerMain, pid
	w, err := recording.CreateRing(filepath.Join(j.dir, recording.NextRingName(pid, uint64(10*pid), n)), 16, d)
	if err != nil {
		j.Fatal(err)
	}
	j.Cleanup(func() { w.Abandon() })
	return w
}

func TestAProgramThatReplacedItselfEndsItsFirstRing(t *testing.T) {
	j := newJob(t, Options{Remove: true})
	first := j.again(7, 3, recording.Declaration{Opened: 100}) // the numbers in the names tell nothing
	write(t, first, 5)
	j.poll(1)
	second := j.again(7, 2, recording.Declaration{Opened: 200})
	write(t, second, 2)
	j.poll(2)
	j.poll(3)
	if c := j.Counts(); c.Ended != 1 || c.Lost != 0 || len(j.Live()) != 1 || j.Live()[0].Declaration.Opened != 200 {
		t.Fatalf("%+v, alive %+v", c, j.Live())
	}
	if _, n := j.drained(7); n != 2 || len(j.memory.Streams()) != 2 {
		t.Errorf("%d records of the second program, %d streams", n, len(j.memory.Streams()))
	}
}

func TestARingFromAContainerIsFollowedUntilItIsClosed(t *testing.T) {
	j := newJob(t, Options{Remove: true, Namespace: 1})
	j.dead[7] = true // nobody has that number here
	w := j.again(7, 2, recording.Declaration{Namespace: 2})
	for now := uint64(1); now < 5; now++ {
		write(t, w, 1)
		j.poll(now * second)
	}
	if _, n := j.drained(7); n != 4 || j.Counts().Ended != 0 || len(j.Live()) != 1 {
		t.Fatalf("%d records, %+v", n, j.Counts())
	}
	w.Close()
	j.poll(5 * second)
	j.poll(6 * second)
	if j.Counts().Ended != 1 {
		t.Errorf("%+v", j.Counts())
	}
}

func TestBadRingsAreCountedAndLeftAlone(t *testing.T) {
	j := newJob(t, Options{})
	os.WriteFile(j.path(1), []byte("XXXXXXXX"), 0o600)
	os.WriteFile(j.path(2), make([]byte, 70000), 0o600) // in the making
	garbage := make([]byte, 70000)
	copy(garbage, "DWRING9\n")
	os.WriteFile(j.path(3), garbage, 0o600)
	os.WriteFile(filepath.Join(j.dir, "ring-x.dwr"), nil, 0o600)
	os.Symlink("/dev/zero", j.path(4))
	good := j.start(5, recording.ProducerMain, 0)
	write(t, good, 1)
	for now := range uint64(5) {
		j.poll(now * second)
	}
	c := j.Counts()
	if c.Bad != 2 || c.LastBad == nil || c.Mains != 1 { // 3 and 4; 1 and 2 may yet become rings
		t.Errorf("%+v", c)
	}
	os.Truncate(j.path(5), 100) // a good one goes bad
	j.dead[1], j.dead[2] = true, true
	for now := range uint64(5) {
		j.poll((10 + now) * second)
	}
	if c := j.Counts(); c.Bad != 4 || c.Ended != 0 { // 1 and 5 as well; in 2 nothing was recorded before its process ended
		t.Errorf("%+v", c)
	}
}

func TestARingThatIsBeingMadeIsPickedUpLater(t *testing.T) {
	j := newJob(t, Options{})
	f, _ := os.Create(j.path(7))
	f.Close()
	for now := uint64(1); now < 6; now++ {
		j.poll(now * second)
	}
	os.Remove(j.path(7))
	write(t, j.start(7, recording.ProducerMain, 0), 2)
	j.poll(7 * second)
	if _, n := j.drained(7); n != 2 {
		t.Errorf("%d records, %+v", n, j.Counts())
	}
}

func TestTenThousandShortWorkers(t *testing.T) {
	const workers = 600 // of the same make as ten thousand; the folder and the files are what costs
	j := newJob(t, Options{MaxRings: 64, MaxOpen: 16, Remove: true})
	for pid := 1; pid <= workers; pid++ {
		w := j.start(pid, recording.ProducerWorker, 0)
		write(t, w, 2)
		w.Close()
		if pid%50 == 0 {
			j.poll(uint64(pid) * second)
			if len(j.rings) > 64 || openFiles(t, j.dir) > 16 {
				t.Fatalf("%d rings, %d files open", len(j.rings), openFiles(t, j.dir))
			}
			j.RemoveEnded()
		}
	}
	if err := j.Finish(2000 * second); err != nil {
		t.Fatal(err)
	}
	j.RemoveEnded()
	j.poll(2001 * second)
	c := j.Counts()
	if c.Workers != workers || c.Ended != workers || c.Waiting != 0 || len(j.rings) != 0 || len(j.done) != 0 {
		t.Errorf("%+v, %d rings, %d done", c, len(j.rings), len(j.done))
	}
	if left, _ := os.ReadDir(j.dir); len(left) != 0 {
		t.Errorf("%d files left", len(left))
	}
	total := 0
	j.memory.Scan(func(_ recording.StreamID, r []recording.Record) error { total += len(r); return nil })
	if total != 2*workers {
		t.Errorf("%d records, want %d", total, 2*workers)
	}
}

// openFiles counts the files below dir this process holds open for reading only.
func openFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, fd := range fds {
		target, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		info, err := os.ReadFile(filepath.Join("/proc/self/fdinfo", fd.Name()))
		if err == nil && filepath.Dir(target) == dir && !writable(info) {
			n++
		}
	}
	return n
}

func writable(fdinfo []byte) bool {
	var pos, flags int
	fmt.Sscanf(string(fdinfo), "pos:\t%d\nflags:\t%o", &pos, &flags)
	return flags&(os.O_RDWR|os.O_WRONLY) != 0
}

// brokenSink fails from the n-th call on.
type brokenSink struct {
	recording.Sink
	calls int
}

var errDisk = errors.New("disk full")

func (s *brokenSink) fail() error {
	if s.calls--; s.calls < 0 {
		return errDisk
	}
	return nil
}

func (s *brokenSink) Declare(d recording.Declaration) (recording.StreamID, error) {
	if err := s.fail(); err != nil {
		return 0, err
	}
	return s.Sink.Declare(d)
}

func (s *brokenSink) Records(id recording.StreamID, r []recording.Record) error {
	if err := s.fail(); err != nil {
		return err
	}
	return s.Sink.Records(id, r)
}

func (s *brokenSink) Note(id recording.StreamID, n json.RawMessage) error {
	if err := s.fail(); err != nil {
		return err
	}
	return s.Sink.Note(id, n)
}

func TestABrokenSinkDoesNotEndTheLiveView(t *testing.T) {
	for calls := range 4 {
		j := newJob(t, Options{Remove: true})
		j.Drainer = Watch(j.dir, &brokenSink{j.memory, calls}, j.options)
		w := j.start(7, recording.ProducerMain, 0)
		w.Note(recording.PhaseNote{T: 1, Phase: "observe"})
		for step := range uint64(5) {
			write(t, w, 1)
			w.Update(func(h *recording.RingHeader) { h.Step = step + 1 })
			err := j.Poll((step + 1) * second)
			if step == 4 && !errors.Is(err, errDisk) {
				t.Errorf("calls %d: Poll returned %v", calls, err)
			}
		}
		if live := j.Live(); len(live) != 1 || live[0].Step != 5 {
			t.Errorf("calls %d: live view %+v", calls, live)
		}
		w.Close()
		j.Finish(9 * second)
		j.RemoveEnded()
		if _, err := os.Stat(j.path(7)); err != nil {
			t.Errorf("calls %d: a ring that could not be saved was removed", calls)
		}
	}
}

// An agent that is killed before its records are on disk leaves the ring.
func TestARingIsRemovedOnlyWhenAsked(t *testing.T) {
	j := newJob(t, Options{Remove: true})
	w := j.start(7, recording.ProducerMain, 0)
	write(t, w, 3)
	w.Close()
	for now := uint64(1); now < 5; now++ {
		j.poll(now * second)
	}
	if _, err := os.Stat(j.path(7)); err != nil || j.Ended() != 1 || j.Counts().Ended != 1 {
		t.Errorf("%v, %d wait, %+v", err, j.Ended(), j.Counts())
	}
	j.RemoveEnded()
	if _, err := os.Stat(j.path(7)); err == nil || j.Ended() != 0 {
		t.Errorf("it is still there, %d wait", j.Ended())
	}
}

func TestAMissingFolderIsWaitedFor(t *testing.T) {
	d := Watch(filepath.Join(t.TempDir(), "later"), recording.NewMemory(recording.Manifest{}), Options{})
	if err := d.Poll(1); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if err := Watch(file, nil, Options{}).Poll(1); err == nil {
		t.Error("a file was watched as a folder")
	}
}

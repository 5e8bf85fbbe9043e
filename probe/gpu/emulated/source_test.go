package emulated

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

var _ gpu.Source = (*Source)(nil)

const (
	ms    = uint64(1e6)
	delta = 100 * ms
	lag   = 250 * ms
)

// log writes a busy log as the emulated device does.
type log struct {
	t      testing.TB
	dir    string
	path   string
	number uint32
}

func newLog(t testing.TB, index uint32) *log {
	t.Helper()
	l := &log{t: t, dir: t.TempDir()}
	l.path = filepath.Join(l.dir, "gpu-3.busy")
	l.append(recording.BusyHeader{Index: index, Created: delta, UUID: "GPU-emulated-x"}.Encode())
	return l
}

func (l *log) append(b []byte) {
	l.t.Helper()
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.Write(b)
		f.Close()
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *log) entry(e recording.BusyEntry) {
	l.t.Helper()
	l.number++
	e.Number = l.number
	l.append(e.Encode())
}

func (l *log) kernel(start, end uint64, sm float32) {
	l.t.Helper()
	l.entry(recording.BusyEntry{Start: start, End: end, SM: sm, Tensor: sm / 2, Kind: recording.BusyKernel})
}

func (l *log) copy(start, end uint64) {
	l.t.Helper()
	l.entry(recording.BusyEntry{Start: start, End: end, Kind: recording.BusyCopy})
}

func (l *log) open() *Source {
	l.t.Helper()
	s, err := Open(Options{Dir: l.dir, Locks: filepath.Join(l.dir, "locks")})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { s.Close() })
	return s
}

func sample(t testing.TB, s *Source, until uint64) gpu.Batch {
	t.Helper()
	b, err := s.Sample(context.Background(), until)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func near(a float32, b float64) bool { return math.Abs(float64(a)-b) < 1e-6 }

// Time in ms:
//
//	kernels   100 ▐████ 0.8 ████▌ 150      180 ▐██████ 0.5 ██████▌ 250
//	copies              140 ▐███▌ 160
//	windows   │        100–200         │       200–300      │  300–400
func TestActivityIsOverlapOverWindow(t *testing.T) {
	l := newLog(t, 3)
	l.kernel(100*ms, 150*ms, 0.8)
	l.copy(140*ms, 160*ms)
	l.kernel(180*ms, 250*ms, 0.5)
	s := l.open()
	b := sample(t, s, 400*ms+lag)
	if len(b.Windows) != 3 || b.Rejected != 0 || !b.Changed {
		t.Fatalf("batch %+v", b)
	}
	for i, want := range []struct{ sm, resident, tensor, copied float64 }{
		{0.5*0.8 + 0.2*0.5, 0.7, 0.5*0.4 + 0.2*0.25, 0.2},
		{0.5 * 0.5, 0.5, 0.5 * 0.25, 0},
		{0, 0, 0, 0},
	} {
		w := b.Windows[i]
		if w.Begin != uint64(i+1)*delta || w.End != w.Begin+delta || w.Ref != 3 {
			t.Errorf("window %d is %d to %d of %d", i, w.Begin, w.End, w.Ref)
		}
		if !near(w.SM, want.sm) || !near(w.Resident, want.resident) || !near(w.Tensor, want.tensor) || !near(w.Copy, want.copied) {
			t.Errorf("window %d: %+v, want %+v", i, w, want)
		}
		if w.Power == w.Power || w.DRAM == w.DRAM {
			t.Errorf("window %d knows its power: %+v", i, w)
		}
	}
	devices, err := s.Devices(context.Background())
	if err != nil || len(devices) != 1 || devices[0].UUID != "GPU-emulated-x" || !devices[0].Emulated || devices[0].Ref != 3 {
		t.Errorf("devices %+v, %v", devices, err)
	}
}

func TestQueuedWorkCountsWhenItRuns(t *testing.T) {
	l := newLog(t, 0)
	l.kernel(100*ms, 1100*ms, 1) // a second of work, launched at once
	s := l.open()
	total := 0.0
	for now := 100 * ms; now <= 2000*ms; now += 70 * ms {
		for _, w := range sample(t, s, now+lag).Windows {
			total += float64(w.SM) * float64(w.End-w.Begin)
			if w.End > now {
				t.Fatalf("window %d to %d was closed at %d", w.Begin, w.End, now)
			}
		}
	}
	if math.Abs(total-float64(1000*ms)) > 1 {
		t.Errorf("SM activity adds up to %v ms, want 1000", total/1e6)
	}
}

func TestAnEntryInTwoPieces(t *testing.T) {
	l := newLog(t, 0)
	s := l.open()
	e := recording.BusyEntry{Start: 110 * ms, End: 120 * ms, SM: 1, Kind: recording.BusyKernel, Number: 1}.Encode()
	l.append(e[:13])
	if b := sample(t, s, 150*ms); len(b.Windows) != 0 || b.Rejected != 0 {
		t.Errorf("batch %+v", b)
	}
	l.append(e[13:])
	if b := sample(t, s, 200*ms+lag); len(b.Windows) != 1 || !near(b.Windows[0].SM, 0.1) {
		t.Errorf("batch %+v", b)
	}
}

func TestWhatCannotBeTrueMakesItsWindowsUntrusted(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name    string
		entries []recording.BusyEntry
		trusted []bool // of the windows 100–200, 200–300, 300–400
	}{
		{"activity above 1", []recording.BusyEntry{{Start: 110 * ms, End: 120 * ms, SM: 1.5, Kind: 1}}, []bool{false, true, true}},
		{"activity below 0", []recording.BusyEntry{{Start: 210 * ms, End: 220 * ms, SM: -1, Kind: 1}}, []bool{true, false, true}},
		{"NaN", []recording.BusyEntry{{Start: 110 * ms, End: 220 * ms, SM: nan, Kind: 1}}, []bool{false, false, true}},
		{"tensor infinite", []recording.BusyEntry{{Start: 110 * ms, End: 120 * ms, Tensor: float32(math.Inf(1)), Kind: 1}}, []bool{false, true, true}},
		{"unknown engine", []recording.BusyEntry{{Start: 310 * ms, End: 320 * ms, Kind: 7}}, []bool{true, true, false}},
		{"two kernels at once", []recording.BusyEntry{{Start: 110 * ms, End: 130 * ms, Kind: 1}, {Start: 120 * ms, End: 140 * ms, Kind: 1}}, []bool{false, true, true}},
		{"a kernel beside a copy", []recording.BusyEntry{{Start: 110 * ms, End: 130 * ms, Kind: 1}, {Start: 120 * ms, End: 140 * ms, Kind: 2}}, []bool{true, true, true}},
		{"ends before it starts", []recording.BusyEntry{{Start: 120 * ms, End: 110 * ms, Kind: 1}}, []bool{false, false, false}},
		{"ends never", []recording.BusyEntry{{Start: 120 * ms, End: math.MaxUint64, Kind: 1}}, []bool{false, false, false}},
		{"no time at all", []recording.BusyEntry{{Start: 120 * ms, End: 120 * ms, Kind: 1}}, []bool{true, true, true}},
		{"a far future", []recording.BusyEntry{{Start: 1 << 61, End: 1 << 62, SM: 1, Kind: 1}}, []bool{true, true, true}},
		{"a number is missing", []recording.BusyEntry{{Start: 110 * ms, End: 120 * ms, Kind: 1, Number: 5}}, []bool{false, false, false}},
	} {
		l := newLog(t, 0)
		for i, e := range c.entries {
			if e.Number == 0 {
				e.Number = uint32(i + 1)
			}
			l.append(e.Encode())
		}
		b := sample(t, l.open(), 400*ms+lag)
		if len(b.Windows) != 3 {
			t.Fatalf("%s: %d windows", c.name, len(b.Windows))
		}
		for i, w := range b.Windows {
			trusted := w.Flags&recording.GPUUntrusted == 0
			if trusted != c.trusted[i] || trusted != (w.SM == w.SM) {
				t.Errorf("%s: window %d is %+v, want trusted %v", c.name, i, w, c.trusted[i])
			}
		}
		if all := c.trusted[0] && c.trusted[1] && c.trusted[2]; (b.Rejected == 0) != all {
			t.Errorf("%s: %d rejected", c.name, b.Rejected)
		}
	}
}

func TestALateEntryIsCounted(t *testing.T) {
	l := newLog(t, 0)
	s := l.open()
	sample(t, s, 300*ms+lag)
	l.kernel(150*ms, 350*ms, 1)
	b := sample(t, s, 400*ms+lag)
	if b.Rejected != 1 || len(b.Windows) != 1 || !near(b.Windows[0].SM, 0.5) {
		t.Errorf("batch %+v", b)
	}
}

func TestDevicesAppear(t *testing.T) {
	l := newLog(t, 3)
	os.Remove(l.path)
	s := l.open()
	if b := sample(t, s, 500*ms); len(b.Windows) != 0 || b.Changed {
		t.Errorf("nothing there: %+v", b)
	}
	os.WriteFile(l.path, []byte("DWBU"), 0o600) // in the making
	if b := sample(t, s, 600*ms); b.Changed {
		t.Error("half a header was taken for a device")
	}
	os.Remove(l.path)
	l.append(recording.BusyHeader{Index: 3, Created: 650 * ms, UUID: "GPU-emulated-y"}.Encode())
	b := sample(t, s, 800*ms+lag)
	if !b.Changed || len(b.Windows) != 1 || b.Windows[0].Begin != 700*ms {
		t.Errorf("batch %+v", b)
	}
	os.WriteFile(filepath.Join(l.dir, "gpu-4.busy"), make([]byte, 64), 0o600)
	os.Symlink(l.path, filepath.Join(l.dir, "gpu-5.busy"))
	if _, err := s.Sample(context.Background(), 800*ms); err == nil {
		t.Error("garbage and a link gave no error")
	}
	if b := sample(t, s, 900*ms+lag); b.Changed || len(b.Windows) != 1 {
		t.Errorf("after the error was told: %+v", b)
	}
	if _, err := Open(Options{Interval: time.Microsecond}); err == nil {
		t.Error("a window of a microsecond was accepted")
	}
}

// A folder that is long unchanged is not listed again, until something is made in it or a log in it was not whole.
func TestDevicesAppearInASettledFolder(t *testing.T) {
	l := newLog(t, 3)
	s := l.open()
	settle := func() {
		t.Helper()
		long := time.Now().Add(-time.Hour)
		if err := os.Chtimes(l.dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	devices := func() int {
		t.Helper()
		sample(t, s, 10*delta)
		return len(s.devices)
	}
	settle()
	if n := devices(); n != 1 || s.listed.IsZero() {
		t.Fatalf("%d devices; the folder is settled: %v", n, !s.listed.IsZero())
	}
	header := recording.BusyHeader{Index: 4, Created: delta, UUID: "GPU-emulated-y"}.Encode()
	l.path = filepath.Join(l.dir, "gpu-4.busy")
	l.append(header[:10])
	if n := devices(); n != 1 {
		t.Fatalf("%d devices, with a log that has half a header", n)
	}
	settle()
	devices()
	l.append(header[10:])
	settle()
	if n := devices(); n != 2 {
		t.Errorf("%d devices, when its header was whole", n)
	}
	l.path = filepath.Join(l.dir, "gpu-5.busy")
	l.append(recording.BusyHeader{Index: 5, Created: delta, UUID: "GPU-emulated-z"}.Encode())
	if n := devices(); n != 3 {
		t.Errorf("%d devices, when another was made", n)
	}
}

func TestALogThatBecomesShorter(t *testing.T) {
	l := newLog(t, 0)
	for i := range uint64(4) {
		l.kernel(100*ms+i*10*ms, 105*ms+i*10*ms, 1)
	}
	s := l.open()
	sample(t, s, 100*ms)
	os.Truncate(l.path, recording.BusyHeaderBytes+2*recording.BusyEntryBytes)
	l.number = 2
	l.kernel(320*ms, 370*ms, 1)
	sample(t, s, 110*ms) // notices
	l.number = 3
	b := sample(t, s, 400*ms+lag)
	if len(b.Windows) != 3 || b.Windows[0].Flags&recording.GPUUntrusted == 0 {
		t.Fatalf("batch %+v", b)
	}
	if last := b.Windows[2]; last.Flags&recording.GPUUntrusted != 0 {
		t.Errorf("last window %+v", last)
	}
}

func TestALogThatIsGivenUpIsNotIdle(t *testing.T) {
	l := newLog(t, 0)
	l.kernel(100*ms, 250*ms, 1)
	s := l.open()
	sample(t, s, 200*ms+lag)
	os.Remove(l.path)
	for i := range uint64(30) {
		b := sample(t, s, (300+100*i)*ms+lag)
		if len(b.Windows) != 1 || b.Windows[0].Flags&recording.GPUUntrusted == 0 || !math.IsNaN(float64(b.Windows[0].SM)) {
			t.Fatalf("window %d: %+v", i, b.Windows)
		}
		if len(b.Failures) != 1 || b.Rejected > 1 {
			t.Errorf("failures %v, rejected %d", b.Failures, b.Rejected)
		}
	}
}

func TestHeldIsKnownFromWorkOrTheLock(t *testing.T) {
	l := newLog(t, 0)
	l.kernel(100*ms, 110*ms, 1)
	s := l.open()
	const known, held = recording.GPUHeldKnown, recording.GPUHeld
	flags := func(until uint64) uint8 {
		b := sample(t, s, until+lag)
		return b.Windows[len(b.Windows)-1].Flags & (known | held)
	}
	table := func(lines string) { os.WriteFile(filepath.Join(l.dir, "locks"), []byte(lines), 0o600) }
	if f := flags(200 * ms); f != known|held {
		t.Errorf("with work: %b", f)
	}
	if f := flags(300 * ms); f != 0 {
		t.Errorf("idle, no table: %b", f)
	}
	table("")
	if f := flags(400 * ms); f != 0 {
		t.Errorf("idle, its lock never seen: %b", f)
	}
	table("1: POSIX  ADVISORY  READ 1 00:00:1 0 EOF\n2: FLOCK  ADVISORY  WRITE 9 " + s.devices[0].lockKey + " 0 EOF\n")
	if f := flags(500 * ms); f != known|held {
		t.Errorf("locked: %b", f)
	}
	table("2: -> FLOCK  ADVISORY  WRITE 9 " + s.devices[0].lockKey + " 0 EOF\n")
	if f := flags(600 * ms); f != known {
		t.Errorf("released: %b", f)
	}
}

func TestLogNames(t *testing.T) {
	for name, want := range map[string]bool{"gpu-0.busy": true, "gpu-65535.busy": true, "gpu-65536.busy": false, "gpu-01.busy": false, "gpu-.busy": false, "gpu-1.busy.old": false} {
		if _, ok := logIndex(name); ok != want {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// slowActivity is the obviously correct twin: it walks the window in steps of 1 ms.
func slowActivity(entries []recording.BusyEntry, kind recording.BusyKind, from, to uint64) (busy, sm float64) {
	for at := from; at < to; at += ms {
		for _, e := range entries {
			if e.Kind == kind && e.Start <= at && at < e.End {
				busy++
				sm += float64(e.SM)
			}
		}
	}
	n := float64((to - from) / ms)
	return busy / n, sm / n
}

// TestAgainstTheSlowTwin writes a random log, sampled at random moments while it grows.
func TestAgainstTheSlowTwin(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		l := newLog(t, 0)
		s := l.open()
		var entries []recording.BusyEntry
		var windows []recording.GPU
		ends := [3]uint64{}
		now := 100 * ms
		for range 60 {
			now += ms * uint64(random.IntN(60))
			kind := recording.BusyKind(1 + random.IntN(2))
			start := max(now, ends[kind])
			end := start + ms*uint64(random.IntN(120))
			ends[kind] = end
			e := recording.BusyEntry{Start: start, End: end, SM: random.Float32(), Kind: kind}
			entries = append(entries, e)
			l.entry(e)
			if random.IntN(3) == 0 {
				windows = append(windows, sample(t, s, now+uint64(random.IntN(200))*ms).Windows...)
			}
		}
		windows = append(windows, sample(t, s, 20_000*ms).Windows...)
		for i, w := range windows {
			resident, sm := slowActivity(entries, recording.BusyKernel, w.Begin, w.End)
			copied, _ := slowActivity(entries, recording.BusyCopy, w.Begin, w.End)
			if !near(w.SM, sm) || !near(w.Resident, resident) || !near(w.Copy, copied) || w.Flags&recording.GPUUntrusted != 0 {
				t.Fatalf("seed %d: window %d: %+v, want sm %v resident %v copy %v", seed, i, w, sm, resident, copied)
			}
			if i > 0 && w.Begin != windows[i-1].End {
				t.Fatalf("seed %d: window %d does not follow", seed, i)
			}
		}
	}
}

func TestALongQueueStaysBounded(t *testing.T) {
	l := newLog(t, 0)
	var b []byte
	for n := range uint32(3 * maxQueued / 2) {
		start := 100*ms + uint64(n)*1000
		b = append(b, recording.BusyEntry{Start: start, End: start + 500, SM: 1, Kind: recording.BusyKernel, Number: n + 1}.Encode()...)
	}
	l.append(b)
	s := l.open()
	sample(t, s, 100*ms)
	if n := len(s.devices[0].lanes[0].queued); n > maxQueued {
		t.Errorf("%d entries queued", n)
	}
	untrusted := 0
	batch := sample(t, s, 300*ms+lag)
	for _, w := range batch.Windows {
		if w.Flags&recording.GPUUntrusted != 0 {
			untrusted++
		} else if w.SM > 1 || w.SM < 0 {
			t.Errorf("window %+v", w)
		}
	}
	if len(batch.Windows) != 2 || untrusted == 0 {
		t.Errorf("%d windows, %d untrusted; entries that stayed in the file were not doubted", len(batch.Windows), untrusted)
	}
}

// FuzzSample feeds arbitrary bytes as entries, in two pieces: no ratio leaves 0–1, windows follow each other, and nothing is
// both trusted and unknown.
func FuzzSample(f *testing.F) {
	good := recording.BusyEntry{Start: 110 * ms, End: 180 * ms, SM: 0.5, Kind: 1, Number: 1}.Encode()
	f.Add(good, good[:5])
	f.Add(append(good, recording.BusyEntry{Start: 150 * ms, End: 300 * ms, SM: 1, Kind: 1, Number: 2}.Encode()...), []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		l := newLog(t, 0)
		l.append(first)
		s := l.open()
		windows := sample(t, s, 200*ms+lag).Windows
		l.append(second)
		windows = append(windows, sample(t, s, 500*ms+lag).Windows...)
		if len(windows) != 4 {
			t.Fatalf("%d windows, want 4", len(windows))
		}
		for i, w := range windows {
			if w.Begin != uint64(i+1)*delta || w.End != w.Begin+delta {
				t.Fatalf("window %d: %+v", i, w)
			}
			for _, v := range []float32{w.SM, w.Resident, w.Tensor, w.Copy} {
				if known := v >= 0 && v <= 1; known == (w.Flags&recording.GPUUntrusted != 0) {
					t.Fatalf("window %d: %+v", i, w)
				}
			}
		}
	})
}

// The observer was there before the device:
//
//	since 100 ms ─────── made 350 ms ── kernel 400–500 ms
//	windows   │1 free │2 free │3 unknown│4 busy │
func TestADeviceThatWasMadeLater(t *testing.T) {
	l := newLog(t, 0)
	os.Remove(l.path)
	s, err := Open(Options{Dir: l.dir, Since: 100 * ms})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l.append(recording.BusyHeader{Index: 0, Created: 350 * ms, UUID: "GPU-emulated-z"}.Encode())
	l.kernel(400*ms, 500*ms, 1)
	b := sample(t, s, 500*ms+lag)
	if len(b.Windows) != 4 {
		t.Fatalf("%d windows: %+v", len(b.Windows), b)
	}
	const free, held = recording.GPUHeldKnown, recording.GPUHeldKnown | recording.GPUHeld
	for i, want := range []uint8{free, free, 0, held} {
		w := b.Windows[i]
		if w.Begin != uint64(i+1)*100*ms || w.Flags&held != want || i < 2 && w.SM != 0 {
			t.Errorf("window %d: %+v, want held flags %d", i, w, want)
		}
	}
}

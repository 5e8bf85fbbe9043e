package spool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// field is a yard, and what came out of it by folder.
type field struct {
	*testing.T
	dir  string
	out  map[string]*recording.Memory
	now  uint64
	hide map[string]bool // folders whose sink is not known yet
	*Yard
}

func newField(t *testing.T, o YardOptions) *field {
	t.Helper()
	f := &field{T: t, dir: t.TempDir(), out: map[string]*recording.Memory{}, hide: map[string]bool{}}
	if o.Sink == nil {
		o.Sink = func(folder Folder) (recording.Sink, bool) {
			if f.hide[folder.Path] {
				return nil, false
			}
			if f.out[folder.Path] == nil {
				f.out[folder.Path] = recording.NewMemory(recording.Manifest{})
			}
			return f.out[folder.Path], true
		}
	}
	f.open(o)
	return f
}

func (f *field) open(o YardOptions) {
	f.Helper()
	var err error
	if f.Yard, err = OpenYard(f.dir, o); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { f.Close() })
}

// poll lets 2 s pass and looks again.
func (f *field) poll() {
	f.Helper()
	f.now += 2 * second
	if err := f.Poll(f.now); err != nil {
		f.Fatal(err)
	}
}

func (f *field) mkdir(name string) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		f.Fatal(err)
	}
	return path
}

// ring makes a ring of this very process, which lives, or of one that never was.
func (f *field) ring(folder string, n int, records int) string {
	f.Helper()
	return f.ringOf(folder, os.Getpid(), ownTicks(f.T), n, records)
}

func (f *field) deadRing(folder string, pid, records int) string {
	f.Helper()
	return f.ringOf(folder, pid, 1, 1, records)
}

func (f *field) ringOf(folder string, pid int, ticks uint64, n, records int) string {
	f.Helper()
	name := recording.RingName(pid, ticks)
	if n > 1 {
		name = recording.NextRingName(pid, ticks, n)
	}
	path := filepath.Join(f.mkdir(folder), name)
	w, err := recording.CreateRing(path, 16, recording.Declaration{Producer: recording.ProducerMain, PID: pid})
	if err != nil {
		f.Fatal(err)
	}
	write(f.T, w, records)
	w.Abandon()
	return path
}

func ownTicks(t *testing.T) uint64 {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, ticks, ok := parseStat(stat)
	if !ok {
		t.Fatalf("%s", stat)
	}
	return ticks
}

// streams is how many processes told something in a folder.
func (f *field) streams(folder string) int {
	if f.out[folder] == nil {
		return 0
	}
	return len(f.out[folder].Streams())
}

func (f *field) folders() []string { return f.names() }

func TestYardFollowsWhatLiesInItAndOneLevelBelow(t *testing.T) {
	f := newField(t, YardOptions{})
	f.ring(".", 1, 3)
	f.ring("uid-1000", 1, 3)
	f.ring("4711", 1, 3)
	f.ring("4711/uid-1000", 1, 3)
	f.ring("4711/other", 1, 3)         // no folder of the hook's
	f.ring("uid-1000/uid-1001", 1, 3)  // nor one level further down
	f.ring("4711/uid-1000/deep", 1, 3) // nor two
	f.poll()
	if got := f.folders(); !slices.Equal(got, []string{".", "4711", "4711/uid-1000", "uid-1000"}) {
		t.Errorf("followed %v", got)
	}
	for path, job := range map[string]string{".": "", "uid-1000": "", "4711": "4711", "4711/uid-1000": "4711"} {
		if got := f.places[path].Job; got != job || f.streams(path) != 1 {
			t.Errorf("%s: job %q, %d streams", path, got, f.streams(path))
		}
	}
	if len(f.Live()) != 4 || f.Counts().Followed != 4 || f.Counts().Refused != 0 {
		t.Errorf("%d live, %+v", len(f.Live()), f.Counts())
	}
}

// Nothing is reached through a link, at whatever place it stands and whenever it is put there.
func TestYardFollowsNoLink(t *testing.T) {
	f := newField(t, YardOptions{})
	elsewhere := &field{T: t, dir: t.TempDir()}
	secret := elsewhere.ring("job/uid-1", 1, 3)
	f.mkdir("real")
	for link, target := range map[string]string{
		"linked":            filepath.Join(elsewhere.dir, "job"),
		"uid-7":             filepath.Dir(secret),
		"within":            filepath.Join(f.dir, "real"),
		"real/uid-1":        filepath.Dir(secret),
		"real/uid-2":        "../real",
		"ring-1-1.dwr":      secret,
		"real/ring-1-1.dwr": secret,
		"loop":              "loop",
		"dangling":          "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(f.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	f.poll()
	f.poll()
	f.poll()
	f.poll()
	if got := f.folders(); !slices.Equal(got, []string{".", "real"}) {
		t.Errorf("followed %v", got)
	}
	if f.streams(".")+f.streams("real") != 0 {
		t.Error("a ring was read through a link")
	}
	// A folder that is followed gives way to a link, and a ring in it to another.
	ring := f.ring("real", 1, 3)
	f.poll()
	if f.streams("real") != 1 {
		t.Fatalf("%d streams", f.streams("real"))
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(filepath.Dir(ring), moved); err != nil {
		t.Fatal(err)
	}
	other := elsewhere.ring("job", 2, 9)
	if err := os.Symlink(filepath.Dir(other), filepath.Dir(ring)); err != nil {
		t.Fatal(err)
	}
	f.poll()
	f.poll()
	if f.streams("real") != 1 {
		t.Error("the folder that a link points to is followed")
	}
}

// Another folder in the place of one is followed once no ring of the first is.
func TestYardTellsAFolderFromAnotherInItsPlace(t *testing.T) {
	f := newField(t, YardOptions{})
	f.deadRing("job", 999999, 3)
	f.poll() // its process is gone: it is read to its end at once
	if f.streams("job") != 1 {
		t.Fatalf("%d streams", f.streams("job"))
	}
	if err := os.Rename(filepath.Join(f.dir, "job"), filepath.Join(t.TempDir(), "x")); err != nil {
		t.Fatal(err)
	}
	f.deadRing("job", 999998, 5)
	f.poll()
	f.poll()
	if f.streams("job") != 2 {
		t.Errorf("%d streams", f.streams("job"))
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "job")); err != nil {
		t.Fatal(err)
	}
	f.poll()
	if slices.Contains(f.folders(), "job") {
		t.Error("a folder that is no more is followed")
	}
	f.deadRing("job", 999997, 5) // and comes again
	f.poll()
	f.poll()
	if f.streams("job") != 3 {
		t.Errorf("%d streams", f.streams("job"))
	}
}

// What is no folder and no ring does not make a poll wait or fail, and others go on.
func TestYardSurvivesWhatIsNoRing(t *testing.T) {
	f := newField(t, YardOptions{})
	good := f.ring("good", 1, 3)
	f.mkdir("bad")
	for _, name := range []string{"bad/ring-3-3.dwr", "ring-4-4.dwr", "pipe", "uid-9"} {
		if err := syscall.Mkfifo(filepath.Join(f.dir, name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	f.mkdir("bad/ring-5-5.dwr")
	_ = syscall.Mknod(filepath.Join(f.dir, "bad/ring-6-6.dwr"), syscall.S_IFCHR|0o666, 1<<8|5) // /dev/zero, where one may be made
	if err := os.WriteFile(filepath.Join(f.dir, "bad/ring-7-7.dwr"), []byte(strings.Repeat("x", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		f.poll()
	}
	if f.streams("good") != 1 || f.streams("bad") != 0 {
		t.Errorf("%d good, %d bad", f.streams("good"), f.streams("bad"))
	}
	if c := f.Counts(); c.Bad < 3 || c.Why == nil {
		t.Errorf("%+v", c)
	}
	_ = good
}

func TestYardWaitsForASinkThatIsNotKnown(t *testing.T) {
	f := newField(t, YardOptions{})
	f.hide["pod"] = true
	f.deadRing("pod", 999999, 3)
	f.poll()
	if f.streams("pod") != 0 || f.Counts().Refused != 0 {
		t.Errorf("%+v", f.Counts())
	}
	delete(f.hide, "pod")
	f.poll()
	if f.streams("pod") != 1 {
		t.Error("the ring that waited was not read")
	}
}

// No user takes the places of others.
func TestYardGivesEveryUserAShare(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	f := newField(t, YardOptions{OfOneUser: 3, MaxFolders: 6})
	for i := range 10 {
		if err := os.Chown(f.mkdir(fmt.Sprint("a", i)), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		if err := os.Chown(f.mkdir(fmt.Sprint("b", i)), 1001, 1001); err != nil {
			t.Fatal(err)
		}
	}
	f.poll()
	if got := f.folders(); !slices.Equal(got, []string{".", "a0", "a1", "a2", "b0", "b1"}) {
		t.Errorf("followed %v", got)
	}
	if c := f.Counts(); c.Refused != 7 || c.Folders != 6 || !strings.Contains(c.Why.Error(), "too many") {
		t.Errorf("%+v", c)
	}
	if err := os.Remove(filepath.Join(f.dir, "a1")); err != nil {
		t.Fatal(err)
	}
	f.poll()
	f.poll()
	if !slices.Contains(f.folders(), "a3") {
		t.Errorf("a place that became free is not taken: %v", f.folders())
	}
}

// A ring that its process owns not, in somebody else's folder, is not read.
func TestYardRefusesARingOfSomebodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	f := newField(t, YardOptions{})
	path := f.ring("job", 1, 3)
	if err := os.Chown(path, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		f.poll()
	}
	if f.streams("job") != 0 || f.Counts().Bad != 1 {
		t.Errorf("%d streams, %+v", f.streams("job"), f.Counts())
	}
}

// Rings are removed once they were read to their end; folders only where their job is known to be over.
func TestYardCleansUpBehindJobs(t *testing.T) {
	over := map[string]bool{"over": true, "full": true}
	f := newField(t, YardOptions{Remove: true, Gone: func(p Folder) bool { return over[p.Path] }})
	f.deadRing("over", 999999, 3)
	f.deadRing("kept", 999999, 3)
	f.deadRing("full", 999999, 3)
	if err := os.WriteFile(filepath.Join(f.dir, "full/result.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.poll()
	for _, name := range []string{"over", "kept"} {
		if entries, _ := os.ReadDir(filepath.Join(f.dir, name)); len(entries) != 1 {
			t.Fatalf("a ring is gone before its records were kept: %v", entries)
		}
	}
	f.RemoveEnded()
	f.poll()
	f.poll()
	for name, want := range map[string]bool{"over": false, "kept": true, "full": true, "full/result.txt": true} {
		if _, err := os.Lstat(filepath.Join(f.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.out["over"].Streams()) != 1 {
		t.Error("it was not read")
	}
}

func TestYardThatIsRemovedIsSaid(t *testing.T) {
	f := newField(t, YardOptions{})
	f.ring("job", 1, 3)
	f.poll()
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	f.now += 2 * second
	_ = f.Poll(f.now)
	f.now += 2 * second
	if err := f.Poll(f.now); err == nil {
		t.Error("nobody is told that no job will be seen any more")
	}
}

// A process that is killed leaves its ring open: it is read to its end.
func TestYardReadsTheRingOfAKilledProcess(t *testing.T) {
	f := newField(t, YardOptions{})
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, ticks, _ := parseStat(stat)
	f.ringOf("job", cmd.Process.Pid, ticks, 1, 5)
	f.poll()
	if f.Counts().Followed != 1 {
		t.Fatalf("%+v", f.Counts())
	}
	cmd.Process.Kill()
	cmd.Wait()
	for began := f.now; f.now < began+lookEvery; {
		f.poll()
	}
	if notes := f.out["job"].Streams()[0].Notes; f.Counts().Followed != 0 || len(notes.Ended) != 1 || notes.Ended[0].Running {
		t.Errorf("%+v, %+v", f.Counts(), notes.Ended)
	}
}

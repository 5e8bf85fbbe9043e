package shelf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
)

// node is a machine whose jobs are shelved.
type node struct {
	*testing.T
	*Shelf
	book  *live.Node
	agent *recording.Appender
	state string
	now   time.Time
}

func newNode(t *testing.T, o Options) *node {
	t.Helper()
	n := &node{T: t, book: live.New(live.Options{Begin: 1, Lag: 1, Forget: 1e9}), state: t.TempDir(), now: time.Now()}
	if o.Dir == "" {
		o.Dir = filepath.Join(n.state, Recordings)
	}
	o.Host, o.BootID, o.Version = "here", "boot", "test"
	n.Shelf = New(o, n.book)
	sink := n.Over(n.book.Agent(), nil)
	id, err := sink.Declare(recording.Declaration{Producer: recording.ProducerAgent, Host: "here", PID: 1})
	n.ok(err)
	n.agent = recording.NewAppender(sink, id)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func (n *node) ok(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// process is a training process whose records are shelved.
type process struct {
	n    *node
	sink recording.Sink
	id   recording.StreamID
	out  *recording.Appender
	step uint32
}

func (n *node) train(pid int, job, gpu string) *process {
	n.Helper()
	sink := n.Over(n.book.Spool(live.Identity{Folder: job}), nil)
	id, err := sink.Declare(recording.Declaration{Producer: recording.ProducerMain, PID: pid, StartTicks: uint64(pid), Opened: clock.Mono(), Job: job,
		Host: "here", Argv: []string{"train.py"}, GPUUUID: &gpu})
	n.ok(err)
	return &process{n: n, sink: sink, id: id, out: recording.NewAppender(sink, id)}
}

// steps tells n steps that have just been made.
func (p *process) steps(n int) {
	for range n {
		now := clock.Mono()
		p.n.ok(p.out.Append(recording.Fetch{Enter: now - 2000, Exit: now - 1000, Batch: p.step, CPU: recording.Unknown64}.Encode(),
			recording.Step{Begin: recording.Unknown64, End: now, Step: p.step}.Encode()))
		p.step++
	}
}

func (p *process) end() { p.sink.(recording.Ender).End(p.id) }

// window tells what a GPU's counters showed just now.
func (n *node) window(ref uint16) {
	now := clock.Mono()
	n.ok(n.agent.Append(recording.GPU{Ref: ref, Flags: recording.GPUHeldKnown | recording.GPUHeld, Begin: now - 1000, End: now, SM: 0.5, Resident: 0.7}.Encode()))
}

func (n *node) tick(after time.Duration) error {
	n.now = n.now.Add(after)
	n.book.Tick(clock.Mono())
	return n.Tick(n.now)
}

func (n *node) jobs() map[string][]Slice {
	n.Helper()
	jobs, err := Jobs(n.options.Dir)
	n.ok(err)
	found := map[string][]Slice{}
	for _, j := range jobs {
		found[j.String()] = j.Slices
	}
	return found
}

// contents reads a slice: whose streams are in it, which GPUs have windows in it, and how many steps.
func contents(t *testing.T, dir string) (processes []int, gpus []string, steps int, m recording.Manifest) {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, part := range r.Nodes() {
		m = part.Manifest()
		names := map[recording.StreamID]map[uint16]string{}
		for _, s := range part.Streams() {
			processes = append(processes, s.Declaration.PID)
			names[s.ID] = map[uint16]string{}
			for _, g := range s.Notes.GPUs {
				names[s.ID][g.GPU] = g.UUID
			}
		}
		_, err := recording.Scan(part.Reader, func(id recording.StreamID, records []recording.Record) error {
			for i := range records {
				switch records[i].Kind() {
				case recording.KindStep:
					steps++
				case recording.KindGPU:
					seen[names[id][records[i].Ref()]] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for uuid := range seen {
		gpus = append(gpus, uuid)
	}
	slices.Sort(gpus)
	return processes, gpus, steps, m
}

// Slices follow one another, nothing of a job is lost between them, and the last one ends with the job.
func TestSlicesFollowOneAnother(t *testing.T) {
	n := newNode(t, Options{Slice: 10 * time.Minute})
	p := n.train(7, "a", "GPU-a")
	for range 3 {
		p.steps(10)
		n.ok(n.tick(11 * time.Minute))
		time.Sleep(2 * time.Millisecond) // slices are called by the millisecond in which they begin
	}
	p.steps(5)
	p.end()
	n.ok(n.tick(time.Second))
	n.ok(n.tick(time.Minute))
	all := n.jobs()["a"]
	if len(all) != 4 || len(n.volumes) != 0 {
		t.Fatalf("%d slices, %d are written", len(all), len(n.volumes))
	}
	total := 0
	for i, s := range all {
		_, _, steps, m := contents(t, s.Dir)
		total += steps
		if by := m.EndedBy.Or(""); (by == recording.EndedBySlice) != (i < 3) {
			t.Errorf("slice %d ended by %v", i, by)
		}
	}
	if total != 35 {
		t.Errorf("%d steps in all slices, 35 were made", total)
	}
}

// A slice of a job holds its own GPUs and no other's, and its report says that it is one.
func TestASliceHoldsItsJobAlone(t *testing.T) {
	n := newNode(t, Options{})
	n.ok(n.agent.Note(recording.GPUNote{GPU: 0, UUID: "GPU-a", Name: "A100", Source: "dcgm"}))
	n.ok(n.agent.Note(recording.GPUNote{GPU: 1, UUID: "GPU-b", Name: "A100", Source: "dcgm"}))
	a, b := n.train(7, "a", "GPU-a"), n.train(8, "b", "GPU-b")
	for range 20 {
		a.steps(1)
		b.steps(1)
		n.ok(n.tick(time.Second))
		n.window(0)
		n.window(1)
	}
	n.ok(n.Close())
	for job, want := range map[string]struct {
		pid int
		gpu string
	}{"a": {7, "GPU-a"}, "b": {8, "GPU-b"}} {
		dir, err := Find(n.state, job)
		n.ok(err)
		processes, gpus, steps, _ := contents(t, dir)
		slices.Sort(processes)
		if !slices.Equal(processes, []int{1, want.pid}) || !slices.Equal(gpus, []string{want.gpu}) || steps != 20 {
			t.Errorf("job %s: processes %v, GPUs %v, %d steps", job, processes, gpus, steps)
		}
		result, _, err := reports.Analyse(dir, analysis.Options{Version: "test"})
		n.ok(err)
		var page strings.Builder
		n.ok(reports.One(&page, result, "md"))
		if !strings.Contains(page.String(), "A slice") {
			t.Errorf("the report of %s does not say that it is of a slice", job)
		}
	}
}

// A disk that refuses costs recordings for a while: it is said as long as it lasts, not longer, and then there are some again.
func TestADiskThatRefuses(t *testing.T) {
	n := newNode(t, Options{})
	n.ok(os.MkdirAll(filepath.Dir(n.options.Dir), 0o755))
	n.ok(os.WriteFile(n.options.Dir, nil, 0o600)) // where folders should be
	p := n.train(7, "a", "GPU-a")
	for range 5 {
		p.steps(1)
		if err := n.tick(10 * time.Second); err == nil || !strings.Contains(err.Error(), "recording job a") {
			t.Fatalf("nothing is said: %v", err)
		}
	}
	n.ok(os.Remove(n.options.Dir))
	n.tick(10 * time.Second)
	n.tick(2 * time.Minute)
	p.steps(5)
	n.ok(n.tick(time.Second))
	if all := n.jobs()["a"]; len(all) != 1 {
		t.Errorf("%d slices once the disk takes some", len(all))
	}
}

// A disk that is full in the middle of a slice: the slice so far is kept, and the next begins once there is room.
func TestADiskThatIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("no small disk can be made here: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	n := newNode(t, Options{Dir: filepath.Join(dir, "recordings")})
	t.Cleanup(func() { _ = n.Close() })
	p := n.train(7, "a", "GPU-a")
	var err error
	for range 40 {
		p.steps(500)
		if err = n.tick(time.Second); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is full, and what is said is: %v", err)
	}
	if err := n.tick(time.Second); err == nil {
		t.Error("it is said only once")
	}
	r := n.book.Snapshot().Ranks[0]
	if r.Steps != uint64(p.step) {
		t.Errorf("%d steps are counted of %d", r.Steps, p.step)
	}
	jobs := n.jobs()["a"]
	if len(jobs) != 1 {
		t.Fatalf("%d slices", len(jobs))
	}
	if _, _, steps, _ := contents(t, jobs[0].Dir); steps == 0 {
		t.Error("nothing is left of what was written before")
	}
	n.ok(os.RemoveAll(jobs[0].Dir))
	n.tick(2 * time.Minute)
	p.steps(3)
	n.ok(n.tick(time.Second))
	if jobs := n.jobs()["a"]; len(jobs) != 1 {
		t.Errorf("%d slices once there is room", len(jobs))
	}
}

// Thousands of processes that each call themselves a job of their own: few have recordings, all are counted.
func TestRecordingsAtOnceAreBounded(t *testing.T) {
	n := newNode(t, Options{})
	var procs []*process
	for i := range mostVolumes + 50 {
		p := n.train(100+i, fmt.Sprint("job-", i), "GPU-a")
		p.steps(1)
		procs = append(procs, p)
	}
	err := n.tick(time.Second)
	if !errors.Is(err, errCrowded) || len(err.Error()) > 1000 {
		t.Errorf("%v", err)
	}
	if got := len(n.jobs()); got != mostVolumes || len(n.book.Snapshot().Ranks) != mostVolumes+50 {
		t.Errorf("%d jobs are recorded", got)
	}
	for _, p := range procs[:100] {
		p.end()
	}
	n.tick(time.Minute)
	n.tick(2 * time.Minute)
	procs[mostVolumes].steps(1)
	n.tick(time.Second)
	if len(n.jobs()[fmt.Sprint("job-", mostVolumes)]) != 1 {
		t.Error("a place that became free is not taken")
	}
}

// Names are what jobs make them: none leads out of the folder, none is another's.
func TestHostileNames(t *testing.T) {
	n := newNode(t, Options{})
	names := []string{"../../etc/passwd", "..", ".", "/", "a/b", "a\x00b", strings.Repeat("ü", 500), strings.Repeat("x", 500) + "y", "\x1b[31mred", "con", "a b", "ä"}
	for i, name := range names {
		n.train(10+i, name, "GPU-a").steps(2)
	}
	n.ok(n.tick(time.Second))
	entries, err := os.ReadDir(n.options.Dir)
	n.ok(err)
	outside, err := os.ReadDir(n.state)
	n.ok(err)
	if len(entries) != len(n.jobNames()) || len(outside) != 1 {
		t.Errorf("%d folders for %d jobs, and %v", len(entries), len(n.jobNames()), outside)
	}
	for _, e := range entries {
		if strings.ContainsAny(e.Name(), "/\x00\x1b \n") || len(e.Name()) > 100 {
			t.Errorf("a folder called %q", e.Name())
		}
	}
	for name := range n.jobNames() {
		dir, err := Find(n.state, name)
		if err != nil || filepath.Dir(filepath.Dir(dir)) != n.options.Dir {
			t.Errorf("%q: %s, %v", name, dir, err)
		}
	}
}

func (n *node) jobNames() map[string]bool {
	names := map[string]bool{}
	for _, j := range n.book.Snapshot().Jobs {
		names[j.Tenant.Job] = true
	}
	for _, r := range n.book.Snapshot().Ranks {
		names[r.Tenant.Job] = true
	}
	return names
}

func TestFind(t *testing.T) {
	state := t.TempDir()
	lay := func(tenant live.Tenant, began string, length time.Duration) string {
		t.Helper()
		dir := filepath.Join(state, Recordings, folderOf(tenant))
		if err := describe(dir, tenant); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.DateTime, "2026-11-30 "+began)
		if err != nil {
			t.Fatal(err)
		}
		slice := filepath.Join(dir, at.Format(sliceForm))
		if err := os.Mkdir(slice, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(slice, "x")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at.Add(length), at.Add(length)); err != nil {
			t.Fatal(err)
		}
		return slice
	}
	lay(live.Tenant{Job: "one"}, "10:00:00", 15*time.Minute)
	newest := lay(live.Tenant{Job: "one"}, "10:15:00", 5*time.Minute)
	before := lay(live.Tenant{Job: "begun"}, "10:00:00", 15*time.Minute)
	lay(live.Tenant{Job: "begun"}, "10:15:00", time.Second)
	only := lay(live.Tenant{Job: "short"}, "10:00:00", time.Second)
	x := lay(live.Tenant{Job: "bert", Namespace: "team", Pod: "bert-0"}, "10:00:00", time.Hour)
	lay(live.Tenant{Job: "bert", Namespace: "team", Pod: "bert-1"}, "10:00:00", time.Hour)
	lay(live.Tenant{Job: "bert", Namespace: "other", Pod: "bert-0"}, "10:00:00", time.Hour)

	for path, text := range map[string]string{"damaged/job.json": "{", "empty/x": "", "a-file": "", "folder-json/job.json/x": "", "no-slices/job.json": `{"Job":"none"}`} {
		path = filepath.Join(state, Recordings, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(state, Recordings, "empty", about), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ name, want, says string }{
		{name: "one", want: newest},
		{name: "begun", want: before},
		{name: "short", want: only},
		{name: "team/bert/bert-0", want: x},
		{name: "team/bert", says: "may be team/bert/bert-0, team/bert/bert-1"},
		{name: "bert", says: "by that name alone"},
		{name: "nobody", says: "there are begun"},
		{name: "", says: "no such job"},
		{name: "none", says: "no such job"},
		{name: "../one", says: "no such job"},
	} {
		dir, err := Find(state, c.name)
		if dir != c.want || (err == nil) != (c.says == "") || c.says != "" && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %s, %v", c.name, dir, err)
		}
	}
	if _, err := Find(t.TempDir(), "one"); !errors.Is(err, ErrNoJob) || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("an empty shelf: %v", err)
	}
}

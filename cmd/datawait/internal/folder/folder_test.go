package folder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestName(t *testing.T) {
	at := time.Date(2026, 11, 30, 7, 12, 0, 0, time.UTC)
	for argv, want := range map[string]string{
		"python3 train.py --epochs 1":                           "train",
		"python3 -u /data/my train.py":                          "train",
		"torchrun --nproc-per-node 8 src/pretrain.py":           "pretrain",
		"python3 -m torch.distributed.run train.py":             "train",
		"python3 -m package.train --lr 1":                       "package.train",
		"./train.py":                                            "train",
		"bash run.sh":                                           "bash",
		"/opt/bin/trainer":                                      "trainer",
		"python3 ../..py":                                       "job",
		"accelerate launch --config_file c.yaml ./fine_tune.py": "fine_tune",
	} {
		if got := Name(strings.Fields(argv), at); got != "datawait-"+want+"-20261130-0712" {
			t.Errorf("Name(%s) = %s, want …-%s-…", argv, got, want)
		}
	}
}

// lay makes files in a fresh folder; a name that ends in / is a folder.
func lay(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out[1]") // a name that is a pattern too
	for _, name := range append([]string{"/"}, names...) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCreate(t *testing.T) {
	old := []string{"report.html", "report.json", "node-a/manifest.json", "node-a/segment-000001.dws"}
	for _, tt := range []struct {
		name   string
		there  []string
		force  bool
		exists bool
		kept   []string
	}{
		{"an empty folder", nil, false, false, nil},
		{"another host's part", []string{"node-b/manifest.json"}, false, false, []string{"node-b/manifest.json"}},
		{"an earlier run", old, false, true, old},
		{"an earlier run, by force", old, true, false, nil},
		{"somebody's file", []string{"notes.txt"}, false, true, []string{"notes.txt"}},
		{"somebody's file, by force", append([]string{"notes.txt"}, old...), true, false, []string{"notes.txt"}},
		{"somebody's file in the node", append([]string{"node-a/model.pt"}, old...), true, true, []string{"node-a/model.pt"}},
	} {
		dir := lay(t, tt.there...)
		out, err := Create(dir, "a", tt.force)
		if out != nil {
			out.Release()
		}
		if errors.Is(err, ErrExists) != tt.exists || (err != nil && !tt.exists) {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, name := range tt.kept {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s: %s is gone", tt.name, name)
			}
		}
		if tt.force && !tt.exists {
			if _, err := os.Stat(filepath.Join(dir, "report.html")); err == nil {
				t.Errorf("%s: the old report is still there", tt.name)
			}
		}
	}
}

func TestCreateRefusesAFile(t *testing.T) {
	file := filepath.Join(lay(t, "plain"), "plain")
	if _, err := Create(file, "a", true); err == nil {
		t.Error("a file was taken for a folder")
	}
}

func TestMakeFresh(t *testing.T) {
	dir := lay(t, "x/", "x-2/")
	for name, want := range map[string]string{"x": "x-3", "y": "y"} {
		if got, err := MakeFresh(filepath.Join(dir, name)); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("MakeFresh(%s) = %s, %v, want %s", name, got, err, want)
		}
	}
	if _, err := MakeFresh(filepath.Join(dir, "none", "x")); err == nil {
		t.Error("a folder was made where none can be")
	}
}

// Runs that begin at the same moment: each gets a folder that datawait names, and one of them a folder that they all name.
func TestRunsThatBeginAtOnce(t *testing.T) {
	const runs = 16
	for _, force := range []bool{false, true} {
		dir := lay(t)
		var mu sync.Mutex
		var all sync.WaitGroup
		fresh, got := map[string]bool{}, 0
		for range runs {
			all.Go(func() {
				name, err := MakeFresh(filepath.Join(dir, "fresh"))
				out, refused := Create(filepath.Join(dir, "named"), "a", force)
				mu.Lock()
				defer mu.Unlock()
				if fresh[name] = true; err != nil {
					t.Error(err)
				}
				switch {
				case refused == nil:
					got++
					defer t.Cleanup(out.Release)
				case !errors.Is(refused, ErrInUse):
					t.Error(refused)
				}
			})
		}
		all.Wait()
		if len(fresh) != runs || got != 1 {
			t.Errorf("%d runs (force %v) got %d folders of their own, and %d the one they named", runs, force, len(fresh), got)
		}
	}
}

// A run that goes on is not replaced, whatever it is told.
func TestARunningRunIsNotReplaced(t *testing.T) {
	dir := lay(t)
	first, err := Create(dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "node-a", "segment-000001.dws")
	if err := os.WriteFile(segment, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, "a", true); !errors.Is(err, ErrInUse) {
		t.Errorf("a running run is replaced: %v", err)
	}
	if other, err := Create(dir, "b", false); err != nil {
		t.Errorf("another host's part of the run is refused: %v", err)
	} else {
		other.Release()
	}
	first.Release()
	if _, err := os.Stat(segment); err != nil {
		t.Error("what the running run wrote is gone")
	}
	if again, err := Create(dir, "a", true); err != nil {
		t.Errorf("after its end it cannot be replaced: %v", err)
	} else {
		again.Release()
	}
}

func TestElection(t *testing.T) {
	r := &Run{Dir: t.TempDir()}
	first, err := r.Elect()
	if err != nil || !first {
		t.Fatalf("the first is not elected: %v", err)
	}
	other := &Run{Dir: r.Dir}
	if second, err := other.Elect(); err != nil || second {
		t.Errorf("a second is elected: %v, %v", second, err)
	}
	if !InUse(r.Dir) {
		t.Error("a held lock is not seen")
	}
	if !r.Claim("0") || !other.Claim("1") || other.Claim("0") {
		t.Error("every rank can be claimed once")
	}
	other.Remove()
	if _, err := os.Stat(r.Dir); err != nil {
		t.Error("one that was not elected removed the folder")
	}
	calls := 0
	extract := func(dir string) error { calls++; return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) }
	for _, w := range []*Run{r, other} {
		dir, err := w.Hook(extract)
		if _, serr := os.Stat(filepath.Join(dir, "x")); err != nil || serr != nil {
			t.Errorf("hook: %v, %v", err, serr)
		}
	}
	if calls != 1 {
		t.Errorf("the hook was unpacked %d times", calls)
	}
	r.Remove()
	if _, err := os.Stat(r.Dir); err == nil {
		t.Error("the folder is still there")
	}
}

func TestKey(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	parent := Process{PID: 7, Start: "70", Space: "40"}
	for _, tt := range []struct {
		env  func(string) string
		want string
		rank string
	}{
		{env(), "", ""},
		{env("LOCAL_RANK", "0"), "job-7-70-40", "0"},
		{env("LOCAL_RANK", "3", "TORCHELASTIC_RESTART_COUNT", "1"), "job-7-70-40-1", "3"},
		{env("SLURM_LOCALID", "0"), "job-7-70-40", "0"},
	} {
		if key, rank := Key(tt.env, parent); key != tt.want || rank != tt.rank {
			t.Errorf("key %s, rank %s, want %s, %s", key, rank, tt.want, tt.rank)
		}
	}
	if p := LookUp(os.Getpid()); p.PID != os.Getpid() || p.Start == "" || p.Space == "" {
		t.Errorf("LookUp gave %v", p)
	}
}

// Two containers that share a /dev/shm have processes of the same name: their runs stay apart.
func TestRunsOfTheSameNameStayApart(t *testing.T) {
	dir := lay(t)
	t.Setenv("TMPDIR", dir)
	made := map[string]bool{}
	for range 3 {
		r, err := OpenOwn(Process{PID: 1, Start: "2", Space: "test-" + filepath.Base(filepath.Dir(dir))})
		if err != nil {
			t.Fatal(err)
		}
		if first, err := r.Elect(); err != nil || !first {
			t.Errorf("a run of its own has another's agent: %v", err)
		}
		made[r.Dir] = true
		t.Cleanup(r.Remove)
	}
	if len(made) != 3 {
		t.Errorf("three runs share %d folders", len(made))
	}
}

func TestOwnFolderIsPrivate(t *testing.T) {
	dir := lay(t, "mine/", "open/", "file")
	for name, mode := range map[string]os.FileMode{"mine": 0o700, "open": 0o755} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "mine"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"mine": true, "new": true, "open": false, "file": false, "link": false} {
		if err := ownFolder(filepath.Join(dir, name)); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStaleRunsAreRemoved(t *testing.T) {
	self, dead := LookUp(os.Getpid()), zombie(t)
	dir := lay(t, "run-1-1/agent.lock", "run-1-1/ring-1-1.dwr", "run-2-2/agent.lock", "run-3-3/notes.txt", "other/agent.lock",
		"job-4-4/agent.lock", fmt.Sprintf("job-4-4/ring-%d-%s.dwr", self.PID, self.Start), "run-5-5/agent.lock",
		"run-6-6/agent.lock", fmt.Sprintf("run-6-6/ring-%d-%s.dwr", dead.PID, dead.Start), // nobody waited for it
		"job-7-7/rank-0", "job-7-7/.hook-1/datawait/ring.py") // killed before it had its lock
	held := &Run{Dir: filepath.Join(dir, "run-5-5")}
	if ok, err := held.Elect(); !ok || err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * staleAfter)
	for _, name := range []string{"run-1-1", "run-3-3", "other", "job-4-4", "run-5-5", "run-6-6", "job-7-7"} { // run-2-2 is of now
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir, time.Now())
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "job-4-4 other run-2-2 run-3-3 run-5-5" {
		t.Errorf("left: %s", got)
	}
}

// zombie is a process that ended and is not waited for before the test is over.
func zombie(t *testing.T) Process {
	t.Helper()
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() })
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if p := LookUp(c.Process.Pid); p.Ended {
			return p
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("a killed process does not end")
	return Process{}
}

// A mapped file must never kill the job: only file systems known to write in place are taken.
func TestMappable(t *testing.T) {
	for magic, want := range map[uint32]bool{
		0x01021994: true, 0xef53: true, 0x58465342: true, 0x794c7630: true,
		0x9123683e: false, 0x2fc12fc1: false, 0x6969: false, 0x65735546: false, 0x12345: false,
	} {
		if err := writesInPlace(magic); (err == nil) != want {
			t.Errorf("%#x: %v", magic, err)
		}
	}
	if err := mappable("/proc"); err == nil {
		t.Error("a ring in /proc")
	}
	if err := mappable(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a ring nowhere")
	}
}

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// saves is a training script that saves in every step, in a folder that holds the checkpoints of an earlier run.
type saves struct {
	script string // in testdata/guard
	writer string // its argument
	call   string // what the save-guard names, "" = nothing: the run comes to the end of its plan, and no save is tried
	leaves string // a file of its own that the script had begun
	orphan bool   // datawait is killed, so that nothing more is recorded
	ranks  int    // under torchrun, 0 = the script itself is the only one
	async  bool   // a clean save may be under way when the first cached block is to begin, and is let finish
}

// TestAThrowAwayRunLeavesTheFolderAsItWas runs writers under diagnose. The script notes what its folder holds after each
// of its saves; the recording says when the first cached block began. What the folder held then it must hold at the end.
func TestAThrowAwayRunLeavesTheFolderAsItWas(t *testing.T) {
	for _, c := range []saves{
		{script: "writers.py", writer: "pickle", call: "open"},
		{script: "writers.py", writer: "pickle, rotated", call: "open"},
		{script: "writers.py", writer: "numpy.save", call: "open"},
		{script: "writers.py", writer: "numpy.savez", call: "open"},
		{script: "writers.py", writer: "os.replace", call: "os.replace", leaves: "./model.tmp"},
		{script: "writers.py", writer: "os.rename", call: "os.rename", leaves: "./model.tmp"},
		{script: "writers.py", writer: "Path.rename", call: "Path.rename", leaves: "./model.tmp"},
		{script: "writers.py", writer: "Path.replace", call: "Path.replace", leaves: "./model.tmp"},
		{script: "writers.py", writer: "shutil.move", call: "os.rename", leaves: "./model.tmp"},
		{script: "writers.py", writer: "write_bytes", call: "open"},
		{script: "writers.py", writer: "rmtree", call: "shutil.rmtree"},
		{script: "writers.py", writer: "a thread", call: "os.replace", leaves: "./model.tmp"},
		{script: "writers.py", writer: "a forked child", call: "open"},
		{script: "writers.py", writer: "a spawned child", call: "open"},
		{script: "writers.py", writer: "a Python of its own", call: "open"},
		{script: "writers.py", writer: "cp", call: "subprocess", leaves: "./model.tmp"},
		{script: "writers.py", writer: "a shell", call: "os.system"},
		{script: "writers.py", writer: "finally"},
		{script: "writers.py", writer: "Ctrl-C", call: "os.replace", leaves: "./model.tmp"},
		{script: "writers.py", writer: "SIGTERM", call: "open"},
		{script: "writers.py", writer: "the agent is killed", leaves: "./model.tmp", orphan: true},
		{script: "writers_torch.py", writer: "a path", call: "torch.save"},
		{script: "writers_torch.py", writer: "a file object", call: "open"},
		{script: "writers_torch.py", writer: "a buffer", call: "torch.save"},
		{script: "writers_torch.py", writer: "a thread", call: "torch.save", async: true},
		{script: "writers_torch.py", writer: "a process from before", call: "torch.serialization.save"},
		{script: "writers_torch.py", writer: "a ScriptModule", call: "RecursiveScriptModule.save"},
	} {
		t.Run(strings.TrimSuffix(c.script, ".py")+" "+c.writer, func(t *testing.T) {
			t.Parallel()
			c.run(t, python()).judge(t, c)
		})
	}
}

// TestFrameworksLeaveTheFolderAsItWas is the same with the newest PyTorch and the frameworks people train with.
func TestFrameworksLeaveTheFolderAsItWas(t *testing.T) {
	python := latestPython(t)
	for _, c := range []saves{
		{writer: "safetensors", call: "safetensors.torch.save_file"},
		{writer: "distributed", call: "torch.distributed.checkpoint.save"},
		{writer: "distributed_async", call: "torch.distributed.checkpoint.async_save"},
		{writer: "lightning", call: "Trainer.save_checkpoint"},
		{writer: "trainer", call: "Trainer._save_checkpoint"},
		{writer: "accelerate", call: "Accelerator.save_state"},
		{writer: "ddp", call: "torch.save", ranks: 2},
	} {
		c.script = "writers_latest.py"
		t.Run(c.writer, func(t *testing.T) {
			t.Parallel()
			c.run(t, python).judge(t, c)
		})
	}
}

// latestPython is the Python with the frameworks. Without one nothing is tested, which is said, and a failure in CI.
func latestPython(t *testing.T) string {
	const name = "DATAWAIT_LATEST_PYTHON"
	path := os.Getenv(name)
	switch {
	case path == "" && os.Getenv("CI") == "true":
		t.Fatalf("%s is not set: `make test-latest-torch` sets it, and CI must run that", name)
	case path == "":
		t.Skipf("NOT TESTED: %s is not set; `make test-latest-torch` installs the frameworks and sets it", name)
	}
	return path
}

// ran is what a run left.
type ran struct {
	folder  string
	job     *load.Job
	witness []told
	said    string
}

// told is a line of the witness.
type told struct {
	T     uint64            `json:"t"`
	Holds map[string]string `json:"holds"`
	Saves *int              `json:"saves"`
	Saved *int              `json:"saved"`
}

func (c saves) run(t *testing.T, python string) ran {
	t.Helper()
	root := t.TempDir()
	job, out, witness := filepath.Join(root, "job"), filepath.Join(root, "out"), filepath.Join(root, "witness")
	earlier(t, job)
	scripts, err := filepath.Abs("testdata/guard")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	argv := []string{"diagnose", "--throwaway", "--gpu", "none", "--interval", "20ms", "--duration", c.budget(), "--format", "json", "--out", out, "--", python}
	if c.ranks > 0 {
		argv = append(argv, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", strconv.Itoa(c.ranks))
	}
	cmd := exec.CommandContext(ctx, "datawait", append(argv, filepath.Join(scripts, c.script), c.writer)...)
	cmd.Dir = job
	cmd.Env = append(os.Environ(), "WITNESS="+witness, "TMPDIR="+scratch(t), "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	cmd.WaitDelay = time.Minute
	said, err := cmd.CombinedOutput() // to its end: the script holds the same pipe
	if (err != nil) != c.orphan {
		t.Fatalf("%v\n%s", err, said)
	}
	j := jobOf(t, out)
	if c.orphan { // the rank's ring is still where it was
		spool, _ := j.Nodes[0].Manifest.Options["spool"].(string)
		j = jobOf(t, spool)
		os.RemoveAll(spool)
	}
	if len(j.Ranks) != max(c.ranks, 1) {
		t.Fatalf("%d ranks\n%s", len(j.Ranks), said)
	}
	return ran{job, j, readWitness(t, witness), string(said)}
}

// scratch is a folder for temporary files, with a short name: sockets of loaders' workers lie in it.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// budget is short where the run comes to its end; on a busy machine a test needs room.
func (c saves) budget() string {
	if c.call == "" && !c.orphan {
		return "8s"
	}
	return "60s"
}

func jobOf(t *testing.T, dir string) *load.Job {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	j, err := load.Survey(rec.Readers())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range j.Ranks {
		if _, err := k.Load(&load.Room{}); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// earlier makes a folder with what an earlier run left.
func earlier(t *testing.T, job string) {
	t.Helper()
	long := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"model.pkl", "model.bin", "weights.npy", "best/model.pt", "log.txt"} {
		path := filepath.Join(job, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("of an earlier run: "+name), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
}

func readWitness(t *testing.T, path string) (lines []told) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var line told
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, s.Text())
		}
		lines = append(lines, line)
	}
	return lines
}

// judge holds the run to its promise.
func (r ran) judge(t *testing.T, c saves) {
	t.Helper()
	began, by := r.job.Ranks[0].TestBegan, r.job.Nodes[0].Manifest.EndedBy.Or("")
	if began == load.Unknown || !c.orphan && by != recording.EndedByDatawait {
		t.Fatalf("no test, or ended by %q:\n%s", by, r.said)
	}
	var before map[string]string
	clean, tried, saved := 0, 0, 0
	for _, line := range r.witness {
		early := line.T < uint64(began)
		switch {
		case line.Holds != nil && (early || c.async && tried == 0):
			before = line.Holds
		case line.Saved != nil && early:
			clean++
		case line.Saved != nil:
			saved++
		case line.Saves != nil && !early:
			tried++
		}
	}
	if c.async {
		saved-- // it was begun
	}
	if saved > 0 {
		t.Errorf("%d saves came to their end after the first cached block had begun", saved)
	}
	if guarded := c.call != "" || c.orphan; clean == 0 || (tried > 0) != guarded {
		t.Errorf("%d saves before the first cached block, %d tried after it: the test shows nothing", clean, tried)
	}
	r.compare(t, before, c.leaves)
	if !c.orphan {
		r.called(t, c.call)
	}
}

// compare fails for every file that is not what it was, and for every new one but the one the script had begun.
func (r ran) compare(t *testing.T, before map[string]string, leaves string) {
	t.Helper()
	after := holds(t, r.folder)
	for name, was := range before {
		if is := after[name]; is != was {
			t.Errorf("%s was %q, is %q", name, was, is)
		}
	}
	for name, is := range after {
		if _, ok := before[name]; !ok && name != leaves {
			t.Errorf("%s is new: %s", name, is)
		}
	}
}

// holds describes a folder as witness.py does.
func holds(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name := "." + strings.TrimPrefix(path, folder)
		switch info, err := e.Info(); {
		case err != nil:
			return err
		case e.IsDir():
			found[name] = "folder"
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			found[name] = "link to " + to
			return err
		default:
			text, err := os.ReadFile(path)
			found[name] = fmt.Sprintf("%x written at %d", sha256.Sum256(text), info.ModTime().UnixNano())
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// called checks what the save-guard says it stopped, in the rank or in a child of it.
func (r ran) called(t *testing.T, want string) {
	t.Helper()
	calls := map[string]bool{}
	for _, k := range r.job.Ranks {
		for _, n := range k.Notes.SaveGuards {
			calls[n.Call] = true
		}
	}
	for _, notes := range r.job.Nodes[0].Notes {
		for _, n := range notes.SaveGuards {
			calls[n.Call] = true
		}
	}
	if len(calls) > 1 || calls[want] != (want != "") {
		t.Errorf("the save-guard stopped %v, want %q", calls, want)
	}
}

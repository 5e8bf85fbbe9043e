package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// saves is a training script that saves in every step, in a folder that holds the checkpoints of an earlier run.
type saves struct {
	script string   // in testdata/guard
	args   []string // of the script
	call   string   // what the save-guard names; "" = the run comes to the end of its plan
	leaves string   // a file of its own that the script had begun
}

// TestAThrowAwayRunLeavesTheFolderAsItWas runs writers under diagnose. The script notes what its folder holds after each
// of its saves; the recording says when the first cached block began. What the folder held then it must hold at the end.
func TestAThrowAwayRunLeavesTheFolderAsItWas(t *testing.T) {
	for _, c := range []saves{
		{"writers.py", []string{"pickle"}, "open", ""},
		{"writers.py", []string{"pickle, rotated"}, "open", ""},
		{"writers.py", []string{"numpy.save"}, "open", ""},
		{"writers.py", []string{"numpy.savez"}, "open", ""},
		{"writers.py", []string{"os.replace"}, "os.replace", "./model.tmp"},
		{"writers.py", []string{"os.rename"}, "os.rename", "./model.tmp"},
		{"writers.py", []string{"Path.rename"}, "Path.rename", "./model.tmp"},
		{"writers.py", []string{"Path.replace"}, "Path.replace", "./model.tmp"},
		{"writers.py", []string{"shutil.move"}, "os.rename", "./model.tmp"},
		{"writers.py", []string{"write_bytes"}, "open", ""},
		{"writers.py", []string{"rmtree"}, "shutil.rmtree", ""},
		{"writers.py", []string{"a thread"}, "open", ""},
	} {
		t.Run(strings.Join(append([]string{c.script}, c.args...), " "), func(t *testing.T) {
			t.Parallel()
			r := c.run(t)
			r.judge(t, c)
		})
	}
}

// ran is what a run left.
type ran struct {
	folder  string
	rank    *load.Rank
	by      string
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

func (c saves) run(t *testing.T) ran {
	t.Helper()
	root := t.TempDir()
	job, out, witness := filepath.Join(root, "job"), filepath.Join(root, "out"), filepath.Join(root, "witness")
	earlier(t, job)
	scripts, err := filepath.Abs("testdata/guard")
	if err != nil {
		t.Fatal(err)
	}
	argv := append([]string{"diagnose", "--throwaway", "--gpu", "none", "--interval", "20ms", "--duration", "20s", "--format", "json", "--out", out,
		"--", python(), filepath.Join(scripts, c.script)}, c.args...)
	cmd := exec.Command("datawait", argv...)
	cmd.Dir = job
	cmd.Env = append(os.Environ(), "WITNESS="+witness, "TMPDIR="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	rec, err := recording.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	j, err := load.Survey(rec.Readers())
	if err != nil || len(j.Ranks) != 1 {
		t.Fatalf("a job with one rank was recorded: %+v, %v\n%s", j, err, said)
	}
	if _, err := j.Ranks[0].Load(&load.Room{}); err != nil {
		t.Fatal(err)
	}
	return ran{job, j.Ranks[0], j.Nodes[0].Manifest.EndedBy.Or(""), readWitness(t, witness), string(said)}
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
	if r.rank.TestBegan == load.Unknown || r.by != recording.EndedByDatawait {
		t.Fatalf("no test, or ended by %q:\n%s", r.by, r.said)
	}
	var before map[string]string
	clean, tried, saved := 0, 0, 0
	for _, line := range r.witness {
		early := line.T < uint64(r.rank.TestBegan)
		switch {
		case line.Holds != nil && early:
			before = line.Holds
		case line.Saved != nil && early:
			clean++
		case line.Saved != nil:
			saved++
		case line.Saves != nil && !early:
			tried++
		}
	}
	if saved > 0 {
		t.Errorf("%d saves came to their end after the first cached block had begun", saved)
	}
	if clean == 0 || tried == 0 {
		t.Errorf("%d saves before the first cached block, %d tried after it: the test shows nothing", clean, tried)
	}
	r.compare(t, before, c.leaves)
	r.called(t, c.call)
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

// called checks what the save-guard says it stopped.
func (r ran) called(t *testing.T, call string) {
	t.Helper()
	var calls []string
	for _, n := range r.rank.Notes.SaveGuards {
		calls = append(calls, n.Call)
	}
	if got := strings.Join(calls, ", "); got != call {
		t.Errorf("the save-guard stopped %q, want %q", got, call)
	}
}

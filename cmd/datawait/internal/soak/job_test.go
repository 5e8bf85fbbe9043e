package soak

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soaked is one run on its way, and what is seen of it from outside.
type soaked struct {
	dir, out, account, model string
	mark                     string // in the environment of every process of the run
	command                  *exec.Cmd
	began                    time.Time
	done                     chan struct{}
	err                      error

	struck       int  // pid that was hit, 0 = nobody
	contaminated bool // training got a batch from memory
	parked       bool // it waited to be ended: an agent that is killed then may have ended it already
}

func (s *scene) start(t *testing.T) *soaked {
	t.Helper()
	dir := t.TempDir()
	j := &soaked{dir: dir, out: filepath.Join(dir, "run"), account: filepath.Join(dir, "account"), model: filepath.Join(dir, "model"),
		mark: fmt.Sprintf("SOAK_RUN=%d-%d", os.Getpid(), s.seed), done: make(chan struct{})}
	old := time.Now().Add(-time.Hour)
	err := errors.Join(os.WriteFile(j.model, []byte("old"), 0o600), os.Chtimes(j.model, old, old))
	if err != nil {
		t.Fatal(err)
	}
	train, err := filepath.Abs("testdata/train.py")
	if err != nil {
		t.Fatal(err)
	}
	j.command = exec.Command("datawait", s.arguments(j.out, train, j.account, j.model)...)
	j.command.Env = append(os.Environ(), j.mark, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	j.command.Stdout, j.command.Stderr = j.file(t, "stdout"), j.file(t, "stderr")
	j.began = time.Now()
	if err := j.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.killAll)
	go func() { j.err = j.command.Wait(); close(j.done) }()
	return j
}

func (j *soaked) file(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(j.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func (j *soaked) text(name string) string {
	b, _ := os.ReadFile(filepath.Join(j.dir, name))
	return string(b)
}

// strike waits for its moment, then for the victim to exist, and hits it.
func (s *scene) strike(t *testing.T, j *soaked) {
	t.Helper()
	from := j.began
	if s.running {
		for ; !j.trains(); time.Sleep(5 * time.Millisecond) {
			if j.ended() {
				return
			}
		}
		from = time.Now()
	}
	select {
	case <-j.done:
		return
	case <-time.After(s.after - time.Since(from)):
	}
	for {
		if pid := j.find(s.victim); pid > 0 && syscall.Kill(pid, s.blow.signal) == nil {
			j.struck = pid
			break
		}
		select {
		case <-j.done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	if s.blow.signal == syscall.SIGSTOP {
		time.Sleep(s.blow.pause)
		_ = syscall.Kill(j.struck, syscall.SIGCONT)
	}
}

// trains reports whether the training has come to its first line.
func (j *soaked) trains() bool {
	_, ok := j.readAccount()
	return ok
}

func (j *soaked) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// find returns a process of the run that plays this part, 0 if there is none now.
func (j *soaked) find(part string) int {
	if part == agent {
		return j.command.Process.Pid
	}
	processes := j.processes()
	for pid, p := range processes {
		switch {
		case p.gpuChild():
			if part == gpuChild {
				return pid
			}
		case !p.trains():
		case processes[p.parent].trains():
			if part == worker {
				return pid
			}
		case part == trainer:
			return pid
		}
	}
	return 0
}

type marked struct {
	parent int
	line   string
}

func (m marked) gpuChild() bool { return strings.Contains(m.line, "\x00gpu-child\x00") }

// trains reports a process of train.py; datawait's own command line names it too.
func (m marked) trains() bool {
	program, arguments, _ := strings.Cut(m.line, "\x00")
	return filepath.Base(program) != "datawait" && strings.Contains(arguments, "train.py\x00")
}

// processes are those of the run, found by their environment.
func (j *soaked) processes() map[int]marked {
	found := map[int]marked{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, err := os.ReadFile(dir + "/environ")
		if err != nil || !strings.Contains(string(environ), j.mark+"\x00") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		line, _ := os.ReadFile(dir + "/cmdline")
		stat, _ := os.ReadFile(dir + "/stat")
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		found[pid] = marked{parent, string(line)}
	}
	return found
}

// killAll leaves nothing behind when a check failed.
func (j *soaked) killAll() {
	for pid := range j.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// wait waits for datawait, and for what may outlive it.
func (j *soaked) wait(t *testing.T) {
	t.Helper()
	select {
	case <-j.done:
	case <-time.After(time.Minute):
		t.Fatalf("datawait did not end:\n%s\n%v", j.text("stderr"), j.processes())
	}
	for end := time.Now().Add(time.Minute); len(j.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes are left over: %v\n%s", j.processes(), j.text("stderr"))
		}
	}
}

func (j *soaked) status() int { return statusOf(j.err) }

// statusOf is what a process ended with: its exit status, or 128 and the signal.
func statusOf(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return exit.ExitCode()
}

// account is what the training says of itself.
type account struct {
	pid, state          uint64
	begun, done         uint64 // fetches
	wait                uint64 // ns, of those that are done
	lastBegin, lastDone uint64 // CLOCK_MONOTONIC ns
	longest             uint64 // ns from the end of one fetch to the end of the next, at most
	doneBegin           uint64 // of the last one that is done
	inside              uint64 // ns inside the loader itself, of those that are done; 0 = not accounted for
}

func (j *soaked) readAccount() (a account, ok bool) {
	b, err := os.ReadFile(j.account)
	if err != nil || len(b) < 80 {
		return account{}, false
	}
	for i, field := range []*uint64{&a.pid, &a.state, &a.begun, &a.done, &a.wait, &a.lastBegin, &a.lastDone, &a.longest, &a.inside, &a.doneBegin} {
		*field = binary.LittleEndian.Uint64(b[8*i:])
	}
	return a, true
}

// builds are the batches that a worker says it began and finished.
func (j *soaked) builds(worker int) (begun, built uint64) {
	b, err := os.ReadFile(fmt.Sprintf("%s-%d", j.account, worker))
	if err != nil || len(b) < 16 {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
}

package run

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start runs a shell script as a job and returns what it printed first.
func start(t *testing.T, script string) (*Job, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	j, err := Start(Command{Argv: []string{"sh", "-c", script}, Env: os.Environ(), Stdin: null, Stdout: w, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	null.Close()
	t.Cleanup(func() { j.Kill(); j.Exit(); r.Close() })
	return j, bufio.NewReader(r)
}

// line reads one line, or fails after five seconds.
func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	got := make(chan string, 1)
	go func() { s, _ := r.ReadString('\n'); got <- strings.TrimSpace(s) }()
	select {
	case s := <-got:
		return s
	case <-time.After(5 * time.Second):
		t.Fatal("the job printed nothing")
		return ""
	}
}

func TestExitStatus(t *testing.T) {
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 3":        3,
		"kill -TERM $$": 128 + 15,
		"kill -KILL $$": 128 + 9,
	} {
		if j, _ := start(t, script); j.Exit().Status() != want {
			t.Errorf("%s: status %d (%v), want %d", script, j.Exit().Status(), j.Exit(), want)
		}
	}
}

func TestCommandsThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"datawait-no-such-command": StatusNotFound,
		dir + "/missing":           StatusNotFound,
		plain:                      StatusNotExecutable,
		dir:                        StatusNotExecutable,
		binary:                     StatusNotExecutable,
	} {
		_, err := Start(Command{Argv: []string{name}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		if err == nil || StatusOf(err) != want {
			t.Errorf("%s: %v, status %d, want %d", name, err, StatusOf(err), want)
		}
		if err := Exec([]string{name}, nil); err == nil || StatusOf(err) != want {
			t.Errorf("Exec %s: %v, status %d, want %d", name, err, StatusOf(err), want)
		}
	}
	if StatusOf(errors.New("anything else")) != StatusOwnFailure {
		t.Error("an unknown error has not status 125")
	}
}

func TestForwardReachesTheCommandAlone(t *testing.T) {
	j, out := start(t, `trap 'echo usr1; exit 7' USR1; echo ready; while :; do sleep 0.05; done`)
	line(t, out)
	j.Forward(syscall.SIGUSR1)
	if got := line(t, out); got != "usr1" {
		t.Errorf("the command said %q", got)
	}
	if got := j.Exit().Status(); got != 7 {
		t.Errorf("status %d, want 7", got)
	}
}

func TestInterruptReachesTheGroup(t *testing.T) {
	j, out := start(t, `trap : INT; sh -c 'trap "echo child; exit 0" INT; echo ready; while :; do sleep 0.05; done'; exit 5`)
	line(t, out)
	j.Interrupt()
	if got := line(t, out); got != "child" {
		t.Errorf("the group's other process said %q", got)
	}
	if got := j.Exit().Status(); got != 5 {
		t.Errorf("status %d, want 5", got)
	}
}

// gone waits until a process is no more, or a zombie of somebody else.
func gone(pid int) bool {
	for range 100 {
		if p, ok := readProcess(pid); !ok || p.state == 'Z' {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func TestKillReachesOtherSessions(t *testing.T) {
	j, out := start(t, `setsid sh -c 'trap "" TERM INT HUP; echo $$; exec sleep 60' & wait`)
	pid, err := strconv.Atoi(line(t, out))
	if err != nil {
		t.Fatal(err)
	}
	j.Kill()
	if got := j.Exit(); got.Signal != syscall.SIGKILL {
		t.Errorf("the command %v", got)
	}
	if !gone(pid) {
		t.Errorf("process %d in a session of its own is still there", pid)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	j, out := start(t, `(sh -c 'echo $$; exec sleep 0.3' &) ; sleep 3`)
	pid, err := strconv.Atoi(line(t, out))
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if _, ok := readProcess(pid); !ok {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	p, _ := readProcess(pid)
	t.Errorf("orphan %d (state %c, parent %d, we are %d, job %d) was not reaped", pid, p.state, p.parent, os.Getpid(), j.PID())
}

func TestKillProcessKnowsTheStart(t *testing.T) {
	j, _ := start(t, "exec sleep 60")
	p, ok := readProcess(j.PID())
	if !ok {
		t.Fatal("no stat")
	}
	KillProcess(j.PID(), p.start+1) // another process that had this number
	select {
	case <-j.Done():
		t.Fatal("a process with another start was killed")
	case <-time.After(50 * time.Millisecond):
	}
	KillProcess(j.PID(), p.start)
	if got := j.Exit(); got.Signal != syscall.SIGKILL {
		t.Errorf("the command %v", got)
	}
}

func TestParseStat(t *testing.T) {
	stat := "42 (a ) (b) S 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1"
	p, ok := parseStat(42, []byte(stat))
	if !ok || p.parent != 7 || p.state != 'S' || p.start != 987654 {
		t.Errorf("parsed %+v, %v", p, ok)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S", "no parentheses at all"} {
		if _, ok := parseStat(42, []byte(bad)); ok {
			t.Errorf("%q was parsed", bad)
		}
	}
}

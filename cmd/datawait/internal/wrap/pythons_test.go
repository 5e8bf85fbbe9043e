package wrap

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/host"
	"github.com/datawait/datawait/probe/recording"
)

// obstacle: the command line and the environment a process was started with say why the hook is not in it.
func TestObstacles(t *testing.T) {
	p := newPythons("/spool", "/hook")
	attached := []string{"DATAWAIT_SPOOL=/spool", "PYTHONPATH=/hook:/mine"}
	for _, c := range []struct {
		exe, line   string
		environment []string
		unread      error
		want        string
	}{
		{"python3.11", "python3 train.py -I", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3 -I train.py", attached, nil, recording.KeptOutIsolated},
		{"python3.11", "python3 -uIB -m train", attached, nil, recording.KeptOutIsolated},
		{"python3.11", "python3 -Es train.py", attached, nil, recording.KeptOutNoEnv},
		{"python3.11", "python3 -W ignore -S train.py", attached, nil, recording.KeptOutNoSite},
		{"python3.11", "python3 -Wignore -X dev -S train.py", attached, nil, recording.KeptOutNoSite},
		{"python3.11", "python3 -WIgnoreES train.py", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3 --check-hash-based-pycs always train.py -E", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3 -c import-I -I", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3 -m pkg -S", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3 - -E", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "", attached, nil, recording.KeptOutUnknown},
		{"python3.11", "python3 train.py", []string{"PATH=/bin"}, nil, recording.KeptOutNoSpool},
		{"python3.11", "python3 train.py", []string{"DATAWAIT_SPOOL=/spool", "PYTHONPATH=/mine"}, nil, recording.KeptOutNoPath},
		{"python3.11", "python3 train.py", []string{"DATAWAIT_SPOOL=/spool"}, nil, recording.KeptOutNoPath},
		{"python3.11", "python3 train.py", append(attached, "DATAWAIT_HOOK=off"), nil, recording.KeptOutOff},
		{"python3.11", "python3 train.py", nil, fs.ErrPermission, recording.KeptOutUnreadable},
		{"python3.11", "python3 train.py", nil, errors.New("gone"), recording.KeptOutUnknown},
		{"python3.7", "python3 train.py", attached, nil, recording.KeptOutOld},
		{"python2.7", "python train.py", attached, nil, recording.KeptOutOld},
		{"python3.13", "python3 train.py", attached, nil, recording.KeptOutUnknown},
	} {
		if got := p.obstacle(c.exe, strings.Fields(c.line), c.environment, c.unread); got != c.want {
			t.Errorf("%s, %q, %v: %q, want %q", c.exe, c.line, c.environment, got, c.want)
		}
	}
}

// What follows the script may be a secret.
func TestACommandIsToldUpToItsScript(t *testing.T) {
	for line, want := range map[string]string{
		"python3 -I train.py --token s3cret": "python3 -I train.py",
		"python3 -I -m train --token s3cret": "python3 -I -m train",
		"python3 -Im train --token s3cret":   "python3 -Im train",
		"python3 -c print('s3cret') x":       "python3 -c …",
		"python3":                            "python3",
		"python3 -W ignore -u train.py x":    "python3 -W ignore -u train.py",
		"":                                   "",
	} {
		if got := interpreter(strings.Fields(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	long := interpreter([]string{"python3", strings.Repeat("a", 300) + "/train.py"})
	if len([]rune(long)) != 161 || !strings.HasSuffix(long, "/train.py") {
		t.Errorf("a long path becomes %q", long)
	}
}

// sleeper is a process that looks like a Python to the one under test.
func sleeper(t *testing.T, environment []string) int {
	t.Helper()
	c := exec.Command("sh", "-c", "echo; exec sleep 60")
	c.Env = append(os.Environ(), environment...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	bufio.NewReader(out).ReadString('\n')
	return c.Process.Pid
}

func members(pids ...int) (all []host.Member) {
	for _, pid := range pids {
		all = append(all, host.Member{PID: pid})
	}
	return all
}

// A Python that was kept out is found before 30 s are over; one that is slow to start is given that time, and a fork of one that
// the hook runs in is none.
func TestAPythonThatWasKeptOutIsOverdueInTime(t *testing.T) {
	p := newPythons(t.TempDir(), "/hook")
	p.exe = func(int) string { return "/usr/bin/python3.11" }
	attached := []string{"DATAWAIT_SPOOL=" + p.spool, "PYTHONPATH=/hook"}
	dropped, silent, hooked := sleeper(t, []string{"DATAWAIT_SPOOL="}), sleeper(t, attached), sleeper(t, attached)
	if err := os.WriteFile(filepath.Join(p.spool, "seen-"+strconv.Itoa(hooked)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	told := func(others bool) (first map[int]time.Duration) {
		first = map[int]time.Duration{}
		for at := time.Second; at <= 40*time.Second; at += time.Second {
			if one := p.overdue(uint64(at), others); one != nil && first[one.PID] == 0 {
				first[one.PID] = at
			}
		}
		return first
	}
	for at := time.Second; at <= 5*time.Second; at += time.Second {
		p.look(uint64(at), members(dropped, hooked))
	}
	if first := told(true); len(first) != 1 || first[dropped] > 12*time.Second {
		t.Errorf("told of %v, want %d alone", first, dropped)
	}
	if notes := p.noted(true); len(notes) != 1 || notes[0].PID != dropped || notes[0].Why != recording.KeptOutNoSpool {
		t.Errorf("noted %+v", notes)
	}
	p = newPythons(p.spool, "/hook")
	p.exe = func(int) string { return "/usr/bin/python3.11" }
	for at := time.Second; at <= 5*time.Second; at += time.Second {
		p.look(uint64(at), members(silent))
	}
	if first := told(false)[silent]; first < 20*time.Second || first > 30*time.Second {
		t.Errorf("a Python without a sign of the hook is told after %v", first)
	}
	if first := told(true); len(first) != 0 {
		t.Errorf("where the hook runs in others, told of %v", first)
	}
	p.look(uint64(6*time.Second), nil)
	if first := told(false); len(first) != 0 {
		t.Errorf("told of %v, which has ended", first)
	}
	if p.count() != 1 {
		t.Errorf("%d seen", p.count())
	}
}

// A day of workers that come and go does not fill the agent's memory, and they are counted all the same.
func TestPythonsThatEndedAreForgotten(t *testing.T) {
	p := newPythons(t.TempDir(), "/hook")
	p.exe = func(int) string { return "/usr/bin/python3.11" }
	for i := range 2000 {
		p.look(uint64(i)*1e9, members(1<<23, 1<<23+1+i)) // no such process: nothing is known of them
	}
	if len(p.order) > 600 || len(p.known) != len(p.order) || p.count() != 2001 {
		t.Errorf("%d kept, %d counted", len(p.order), p.count())
	}
}

// A script that starts the same unobserved Python at every step is told of once, and does not fill the agent's memory either.
func TestPythonsThatWereKeptOutAlikeAreKeptOnce(t *testing.T) {
	p := newPythons(t.TempDir(), "/hook")
	p.exe = func(int) string { return "/usr/bin/python2.7" }
	for i := range 2000 {
		p.look(uint64(i)*1e9, members(1<<23+i))
	}
	if notes := p.noted(true); len(notes) != 1 || notes[0].Why != recording.KeptOutOld {
		t.Errorf("noted %+v", notes)
	}
	if len(p.order) > 600 || len(p.known) != len(p.order) || p.count() != 2000 {
		t.Errorf("%d kept, %d counted", len(p.order), p.count())
	}
}

// gosu, runuser and sudo -E keep the environment and change the user: the spool's folder is closed to that one.
func TestAnotherUserCannotEnterTheSpool(t *testing.T) {
	p := newPythons(t.TempDir(), "")
	if !p.mayEnter(os.Getpid()) || !p.mayEnter(1<<30) {
		t.Error("this process may, and of one that is not there nothing is claimed")
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can start a process as another user")
	}
	other := exec.Command("sleep", "30")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	if p.mayEnter(other.Process.Pid) {
		t.Error("another user may enter a folder of mode 0700")
	}
	p.exe = func(int) string { return "/usr/bin/python3.11" }
	for _, c := range []struct {
		file string
		want int
	}{{"seen-%d", 1}, {"ring-%d-7.dwr", 0}} { // it became another user after the hook ran in it: before it made a ring, and after
		name := fmt.Sprintf(c.file, other.Process.Pid)
		if err := os.WriteFile(filepath.Join(p.spool, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.look(1e9, members(other.Process.Pid))
		notes := p.noted(true)
		if len(notes) != c.want || c.want > 0 && (notes[0].Why != recording.KeptOutUser || notes[0].Command != "sleep 30") {
			t.Errorf("with %s: noted %+v", name, notes)
		}
	}
}

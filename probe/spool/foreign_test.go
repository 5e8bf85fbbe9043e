package spool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// contained starts a process that is number 1 of a pid namespace of its own, and returns what it is called here.
func contained(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		t.Skip("no pid namespace can be made here: ", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	pid := cmd.Process.Pid
	for range 1000 { // until it is sleep: a ring is opened by a program that runs
		if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); strings.TrimSpace(string(name)) == "sleep" {
			return pid
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it does not begin")
	return 0
}

// ringOfNamespace makes a ring as a process of another pid namespace does.
func (f *field) ringOfNamespace(folder string, pid int, ticks, namespace uint64) *recording.RingWriter {
	f.Helper()
	w, err := recording.CreateRing(filepath.Join(f.mkdir(folder), recording.RingName(pid, ticks)), 16,
		recording.Declaration{Producer: recording.ProducerMain, PID: pid, Namespace: namespace})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Abandon() })
	return w
}

// Its pid means another process here, or none: it is found by when it began, its namespace and its name in there.
func TestARingOfAContainerEndsWithItsProcess(t *testing.T) {
	pid := contained(t)
	_, ticks, _ := statOf(pid)
	f := newField(t, YardOptions{})
	w := f.ringOfNamespace("pod", 1, ticks, namespaceOf(pid))
	write(t, w, 3)
	for range 2000 { // more than an hour in which it writes nothing: a process that is seen to live may be silent
		f.poll()
	}
	if f.Counts().Followed != 1 || f.records("pod") != 3 {
		t.Fatalf("%+v", f.Counts())
	}
	write(t, w, 2)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if state, _, ok := statOf(pid); !ok || state == 'Z' {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for range 4 {
		f.poll()
	}
	if f.Counts().Followed != 0 || f.records("pod") != 5 {
		t.Errorf("%+v, %d records", f.Counts(), f.records("pod"))
	}
}

// A process that is not seen is believed to live until its ring has stood still for hours. The ring stays: its process may be there.
func TestARingOfAContainerThatIsNotSeenEndsWithSilence(t *testing.T) {
	f := newField(t, YardOptions{Remove: true})
	w := f.ringOfNamespace("pod", 1, 1, 12345)
	for range 10200 { // 20400 s
		f.poll()
	}
	write(t, w, 1)
	for range 10200 {
		f.poll()
	}
	if f.Counts().Followed != 1 {
		t.Fatalf("given up although it moved: %+v", f.Counts())
	}
	for range 1200 {
		f.poll()
	}
	f.RemoveEnded()
	if left, _ := filepath.Glob(filepath.Join(f.dir, "pod", "ring-*")); f.Counts().Followed != 0 || f.records("pod") != 1 || len(left) != 1 {
		t.Errorf("%+v, and of the rings are left %v", f.Counts(), left)
	}
}

// However many such rings there are, /proc is read once for all.
func TestTheCensusIsTakenOnceForAllRings(t *testing.T) {
	f := newField(t, YardOptions{})
	for i := range 200 {
		f.ringOfNamespace(fmt.Sprint("pod", i%3), i+1, 1, 12345)
	}
	f.poll()
	taken := f.census.at
	f.poll()
	if taken == 0 || f.census.at != taken {
		t.Errorf("taken at %d, and again at %d", taken, f.census.at)
	}
	for _, p := range f.places {
		if p.drainer.census != f.census {
			t.Errorf("%s has one of its own", p.Path)
		}
	}
	f.poll()
	if f.poll(); f.census.at == taken {
		t.Error("never taken again")
	}
}

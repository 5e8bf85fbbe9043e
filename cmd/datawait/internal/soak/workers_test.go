package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Workers that live for an epoch, thousands of them: the folder of their rings is emptied while they end, datawait does not grow
// with them, and the report is right. Beside the rings lies what does not belong there: links, devices, pipes, holes of a
// tebibyte and files of other users. None of it is followed, waited for or read.
func TestManyShortWorkers(t *testing.T) {
	workers := number(t, "SOAK_WORKERS", 240)
	s := &scene{seed: 77, command: "record", loader: "workers", workers: 2, seconds: 600, build: 0.0005, compute: 0.0003, length: 4}
	s.epochs = workers / s.workers
	j := s.start(t)
	planted := false
	var memory []int
	for ended := false; !ended; {
		select {
		case <-j.done:
			ended = true
		case <-time.After(100 * time.Millisecond):
		}
		dir := j.spool()
		files, _ := filepath.Glob(filepath.Join(dir, "ring-*.dwr"))
		if len(files) > 0 && !planted {
			plant(t, dir)
			planted = true
		}
		if len(files) > 200 {
			t.Fatalf("%d rings lie in the folder", len(files))
		}
		if kib := resident(j.command.Process.Pid); kib > 0 && j.find(trainer) != 0 { // the report, after it, takes what it takes
			memory = append(memory, kib)
		}
	}
	j.wait(t)
	acc, _ := j.readAccount()
	r := j.recorded(t, acc)
	if j.status() != 0 || r.sums != acc.done || r.fetches != acc.done || int(acc.done) != 4*s.epochs || len(r.built) != workers {
		t.Errorf("status %d, account %+v, %d fetches in the sums, %d recorded, %d workers of %d\n%s",
			j.status(), acc, r.sums, r.fetches, len(r.built), workers, j.text("stderr"))
	}
	j.checkBuilds(t, acc, r, told{})
	j.checkReport(t, acc, r)
	if early, late := memory[len(memory)/3], memory[len(memory)-1]; late > early+8<<10 {
		t.Errorf("datawait grew from %d to %d KiB: %v", early, late, memory)
	}
	if !planted {
		t.Error("nothing was planted")
	}
}

// plant puts into a spool what no hook would.
func plant(t *testing.T, dir string) {
	t.Helper()
	check := func(err error) {
		if err != nil && !os.IsPermission(err) && err != syscall.EPERM {
			t.Error(err)
		}
	}
	ring := func(n int) string { return filepath.Join(dir, fmt.Sprintf("ring-%d-5.dwr", 4000000+n)) }
	check(os.Symlink("/dev/zero", ring(1)))
	check(os.Symlink(dir, ring(2)))
	check(syscall.Mkfifo(ring(3), 0o600))
	check(syscall.Mknod(ring(4), syscall.S_IFCHR|0o600, 1<<8|5)) // /dev/zero
	check(os.Mkdir(ring(5), 0o700))
	for n, head := range map[int]string{6: "", 7: "DWRING1\n\x01\x00\x00\x00\x00\x00\x01\x00\x40\x00\x00\x00\x00\x00\x40\x00"} {
		check(os.WriteFile(ring(n), []byte(head), 0o600))
		check(os.Truncate(ring(n), 1<<40))
	}
	check(os.WriteFile(ring(8), []byte("DWRING1\n"), 0o600))
	check(os.Chown(ring(8), 12345, 12345))
	check(os.Symlink("/etc/passwd", filepath.Join(dir, "seen-4000009")))
	check(syscall.Mkfifo(filepath.Join(dir, "gpu-3.busy"), 0o600))
	check(os.Symlink("/dev/zero", filepath.Join(dir, "gpu-4.busy")))
	check(os.WriteFile(filepath.Join(dir, "gpu-5.busy"), []byte("DWBUSY1\n"), 0o600))
	check(os.Truncate(filepath.Join(dir, "gpu-5.busy"), 1<<40))
}

// resident is the anonymous memory of a process in KiB, 0 if it is gone.
func resident(pid int) (kib int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	if fields := strings.Fields(rest); len(fields) > 0 {
		kib, _ = strconv.Atoi(fields[0])
	}
	return kib
}

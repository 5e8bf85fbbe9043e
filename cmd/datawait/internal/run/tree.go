package run

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// process is one line of /proc/<pid>/stat (proc_pid_stat(5)).
type process struct {
	pid, parent int
	state       byte
	start       uint64 // field 22, clock ticks since boot
}

// processes lists what runs now; processes that vanish meanwhile are left out.
func processes() (all []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

func readProcess(pid int) (process, bool) {
	var buf [1024]byte // a line has less than half of that
	n, err := readOnce("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, buf[:n])
}

// readOnce reads the beginning of a file in three system calls. os.ReadFile takes ten, and a node has thousands of processes.
func readOnce(path string, into []byte) (n int, err error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	for {
		if n, err = syscall.Read(fd, into); err != syscall.EINTR {
			return n, err
		}
	}
}

// parseStat reads state, parent and start. The command name may hold anything, so fields count from the last ')'.
func parseStat(pid int, stat []byte) (process, bool) {
	const fields = 20 // from state (field 3) to start time (field 22)
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(rest) < fields {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(string(rest[1]))
	start, err2 := strconv.ParseUint(string(rest[fields-1]), 10, 64)
	return process{pid: pid, parent: parent, state: rest[0][0], start: start}, err1 == nil && err2 == nil
}

// descendants returns root and everything below it, parents first.
func descendants(root int, all []process) []int {
	children := map[int][]int{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p.pid)
	}
	found := []int{root}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// Kill ends the command, its process group and every descendant with SIGKILL; launchers start their ranks in sessions
// of their own, so the group alone is not enough. Nothing of the job can react to it. A command that has ended is left alone:
// its number may be another process's.
func (j *Job) Kill() {
	if j.hasEnded() {
		return
	}
	j.killing.Store(true)
	killTree(j.pid)
	_ = syscall.Kill(-j.pid, syscall.SIGKILL)
}

// KillProcess ends one more process of the job with everything below it, if it is still the one that started at
// startTicks (field 22 of its stat): ranks that another wrapper started are not below the command.
func KillProcess(pid int, startTicks uint64) {
	if p, ok := readProcess(pid); ok && p.start == startTicks && pid > 1 {
		killTree(pid)
	}
}

// killTree first stops everything, so that nothing is started or cleaned up behind the killer's back, then kills.
func killTree(root int) {
	stopped := map[int]bool{}
	for range 10 {
		news := false
		for _, pid := range descendants(root, processes()) {
			if !stopped[pid] {
				_ = syscall.Kill(pid, syscall.SIGSTOP)
				stopped[pid], news = true, true
			}
		}
		if !news {
			break
		}
	}
	for pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// StartTicks returns when a process started, in clock ticks since boot (field 22 of its stat), 0 if it is gone.
func StartTicks(pid int) uint64 {
	p, _ := readProcess(pid)
	return p.start
}

// IsZombie reports whether a process has ended and was not waited for yet.
func IsZombie(pid int) bool {
	p, ok := readProcess(pid)
	return ok && (p.state == 'Z' || p.state == 'X')
}

// Family tells which processes are below root, as it is now.
func Family(root int) func(pid int) bool {
	pids := descendants(root, processes())
	return func(pid int) bool { return slices.Contains(pids, pid) }
}

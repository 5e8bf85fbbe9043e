package alloc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/recording"
)

// processes ties the processes that have a context on a GPU to the jobs they belong to, by their control groups.
type processes struct {
	proc  string
	pods  string // folder of the pods' logs
	alive func(pid int) bool
	told  bool            // something was said before
	was   map[int]process // seen before, by pid
}

// process is one of which it was found out whose it is.
type process struct {
	start  string // field 22 of /proc/PID/stat: a pid alone may be another process by now
	holder recording.Holder
	inside recording.PIDInside // in its own PID namespace; zero where that is the machine's, or is not known
	server bool                // NVIDIA's MPS server, through which others use the GPU
}

func (p *processes) by() string { return recording.AllocatedByProcesses }

// initialPIDs is the machine's own PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h), in which the driver counts.
const initialPIDs = "pid:[4026531836]"

// look finds out whose the processes are that sources have seen, as long as they run. It never calls a GPU free: whoever lists no
// process may not be allowed to see it.
func (p *processes) look(_ context.Context, v View) (claims, error) {
	if len(v.Running) == 0 && !p.told {
		return nil, nil
	}
	if space, err := os.Readlink(filepath.Join(p.proc, "self/ns/pid")); err != nil || space != initialPIDs {
		return nil, errors.New("finding out whose the processes on a GPU are: datawait runs in a PID namespace of its own, and the driver counts in the machine's (hostPID: true in a pod)")
	}
	p.told = true
	all, now := claims{}, map[int]process{}
	for uuid, pids := range v.Running {
		p.gpu(all, uuid, pids, now)
	}
	p.was = now
	return all, nil
}

// gpu says who has one GPU.
func (p *processes) gpu(all claims, uuid string, pids []int, now map[int]process) {
	holders := map[string]recording.Holder{} // by job
	shared := ""
	for _, pid := range pids[:min(len(pids), maxHolders*4)] {
		if pid <= 0 { // somebody looked, and listed none
			continue
		}
		one, ok := p.find(pid)
		if !ok && !p.alive(pid) {
			continue
		}
		if ok {
			now[pid] = one
		}
		if one.server {
			shared = recording.SharedMPS
			continue
		}
		key := one.holder.Job + "\x00" + one.holder.PodUID
		h := holders[key]
		h.Job, h.PodUID, h.Namespace, h.Pod = one.holder.Job, one.holder.PodUID, one.holder.Namespace, one.holder.Pod
		if len(h.PIDs) < maxPIDs {
			h.PIDs = append(h.PIDs, pid)
			if one.inside.PID != 0 {
				h.Inside = append(h.Inside, one.inside)
			}
		}
		holders[key] = h
	}
	for _, h := range holders {
		slices.Sort(h.PIDs)
		slices.SortFunc(h.Inside, func(a, b recording.PIDInside) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.PID, b.PID))
		})
		all.add(uuid, h, shared)
	}
	if shared != "" && all[uuid] != nil {
		all[uuid].shared = shared
	}
}

// runs reports whether there is a process of that pid: also one of another user that /proc hides (proc(5), hidepid).
func runs(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// find returns what is known of a process that runs.
func (p *processes) find(pid int) (process, bool) {
	start, name, err := p.stat(pid)
	if err != nil {
		return process{}, false
	}
	if before, ok := p.was[pid]; ok && before.start == start {
		return before, true
	}
	group, err := readSmall(filepath.Join(p.proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return process{}, false
	}
	one := process{start: start, holder: named(holderOf(group), p.pods), inside: p.inside(pid), server: strings.HasPrefix("nvidia-cuda-mps-server", name) && len(name) >= 15}
	again, _, err := p.stat(pid)
	return one, err == nil && again == start
}

// inside finds out what a process in a container is called there: the last number of NSpid is that of its innermost namespace
// (proc_pid_status(5)), whose inode only its user and root may see.
func (p *processes) inside(pid int) (in recording.PIDInside) {
	space, err := os.Readlink(filepath.Join(p.proc, strconv.Itoa(pid), "ns/pid"))
	if err != nil || space == initialPIDs {
		return in
	}
	inode, ok := strings.CutPrefix(strings.TrimSuffix(space, "]"), "pid:[")
	namespace, err := strconv.ParseUint(inode, 10, 64)
	status, statusErr := readSmall(filepath.Join(p.proc, strconv.Itoa(pid), "status"))
	if !ok || err != nil || statusErr != nil {
		return in
	}
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(numbers)
			if len(all) < 2 {
				return in
			}
			if n, err := strconv.ParseUint(all[len(all)-1], 10, 31); err == nil {
				return recording.PIDInside{PID: int(n), Namespace: namespace}
			}
		}
	}
	return in
}

// stat reads the start and the name of a process (proc_pid_stat(5)). The name stands in brackets, is cut to 15 bytes, and may hold
// anything, brackets too.
func (p *processes) stat(pid int) (start, name string, err error) {
	b, err := readSmall(filepath.Join(p.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", "", err
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return "", "", fmt.Errorf("reading the state of process %d: no name in it", pid)
	}
	fields := strings.Fields(string(b[end+1:]))
	const startField = 22 - 3 // the third field is the first behind the name
	if len(fields) <= startField {
		return "", "", fmt.Errorf("reading the state of process %d: %d fields", pid, len(fields))
	}
	return fields[startField], string(b[open+1 : end]), nil
}

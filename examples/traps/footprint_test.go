package traps

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/examples/internal/trial"
)

// The training process has the threads, children and sockets that it has alone.
func TestTheTrainingProcessStaysAsItIs(t *testing.T) {
	_, alone := bare(t, "footprint.py")
	r := recorded(t, nil, "footprint.py")
	if r.truth.Footprint != alone.Footprint || alone.Footprint == "" {
		t.Errorf("observed: %s\nalone:    %s", r.truth.Footprint, alone.Footprint)
	}
}

// datawait opens no port and no connection, is two processes at most, and stays small. The bar is 70 MiB with its child; this is below.
func TestDatawaitListensNowhereAndStaysSmall(t *testing.T) {
	for _, command := range [][]string{{"record", "--gpu", "emulated"}, {"diagnose"}} {
		j := start(t, command, "together.py", "--wait", "9")
		var most seen
		for !j.isDone() {
			most.look(t, j.command.Process.Pid)
			time.Sleep(20 * time.Millisecond)
		}
		j.wait(t)
		if most.looks < 5 || most.processes < 1 {
			t.Fatalf("%v: looked at %d processes %d times: the test tests nothing", command, most.processes, most.looks)
		}
		if most.processes > 2 {
			t.Errorf("%v: %d processes of datawait", command, most.processes)
		}
		if most.memory > 50<<20 || most.memory < 5<<20 {
			t.Errorf("%v: %d MiB of memory while the job ran", command, most.memory>>20)
		}
		for _, what := range most.open {
			t.Errorf("%v: %s", command, what)
		}
	}
}

// isDone reports whether the job's own process has ended: what datawait needs for the report comes after, and is not judged here.
func (j *job) isDone() bool {
	_, err := os.Stat(j.own)
	return err == nil || j.command.ProcessState != nil
}

// seen is what datawait's processes were seen to be.
type seen struct {
	looks, processes int
	memory           int64
	open             map[string]string
}

// look takes in the processes below datawait's, itself included.
func (o *seen) look(t *testing.T, pid int) {
	t.Helper()
	internet := sockets(t)
	own, memory := 0, int64(0)
	for _, p := range family(pid) {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p))
		if exe != trial.Binary {
			continue
		}
		own++
		memory += share(t, p)
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p))
		for _, link := range links {
			target, _ := os.Readlink(link)
			if address, ok := internet[target]; ok {
				if o.open == nil {
					o.open = map[string]string{}
				}
				o.open[target] = fmt.Sprintf("process %d has %s", p, address)
			}
		}
	}
	o.looks++
	o.processes, o.memory = max(o.processes, own), max(o.memory, memory)
}

// family lists a process and all its descendants.
func family(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // state ppid …
		if len(fields) < 2 {
			continue
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], child)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// share is a process's part of the memory in bytes, what several map divided among them (Pss in proc_pid_smaps_rollup(5)): the program's own pages
// are there once, however many processes run it. RSS counts them in each.
func share(t *testing.T, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0 // it has ended
	}
	_, rest, ok := strings.Cut(string(text), "\nPss:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		t.Errorf("no Pss in %q", text)
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}

// sockets are the internet sockets of this machine: what their link in /proc/PID/fd says, and what they are.
func sockets(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, protocol := range []string{"tcp", "tcp6", "udp", "udp6"} {
		file, err := os.Open("/proc/net/" + protocol)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() { // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode (proc_pid_net(5))
			if f := strings.Fields(lines.Text()); len(f) > 9 && f[0] != "sl" {
				found["socket:["+f[9]+"]"] = protocol + " socket " + f[1] + " in state " + f[3]
			}
		}
		file.Close()
	}
	if len(found) == 0 {
		t.Log("this machine has no internet socket at all")
	}
	return found
}

package wrap

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pythons counts the Python processes of a job, to tell "the hook was kept out" from "no Python ran".
type pythons struct {
	seen map[int]bool
	exe  func(pid int) string // program of a process, "" if unknown
}

func newPythons() *pythons {
	return &pythons{seen: map[int]bool{}, exe: func(pid int) string {
		path, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		return path
	}}
}

// look adds those of the processes that run Python, by the name of their program: python3.11, python.
func (p *pythons) look(pids []int) {
	for _, pid := range pids {
		if !p.seen[pid] && strings.HasPrefix(filepath.Base(p.exe(pid)), "python") {
			p.seen[pid] = true
		}
	}
}

// count returns how many were seen so far.
func (p *pythons) count() int { return len(p.seen) }

package spool

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// Seen is a Python process in which the hook's sitecustomize ran, whether or not it made a ring.
type Seen struct {
	PID     int
	Refused string   // why no ring could be had, "" if none was refused
	Loaders []string // modules of loaders that it imported and that the hook does not see
}

const (
	seenPrefix = "seen-"
	maxSeen    = 1 << 16
	fewSeen    = 256
	maxSaid    = 4 << 10 // bytes
)

func seenPID(name string) (int, bool) {
	text, ok := strings.CutPrefix(name, seenPrefix)
	pid, err := strconv.Atoi(text)
	return pid, ok && err == nil && pid > 0 && strconv.Itoa(pid) == text
}

// thinSeen returns how many Python processes left a sign of theirs so far. When there are many, it takes away the empty ones of
// processes that are gone: workers that are spawned every epoch would fill the folder, which is read again whenever it changes.
func (d *Drainer) thinSeen(pids []int) int {
	all := d.seen + len(pids)
	if d.options.Remove && len(pids) > fewSeen {
		for _, pid := range pids {
			path := filepath.Join(d.dir, seenPrefix+strconv.Itoa(pid))
			info, err := os.Lstat(path)
			if err == nil && info.Mode().IsRegular() && info.Size() == 0 && !exists(pid) && os.Remove(path) == nil {
				d.seen++
			}
		}
	}
	return all
}

func exists(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

// ReadSeen lists the Python processes the hook ran in, in the order of their file names.
func ReadSeen(dir string) ([]Seen, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing hooked processes: %w", err)
	}
	var seen []Seen
	for _, e := range entries {
		if pid, ok := seenPID(e.Name()); ok && len(seen) < maxSeen {
			s := Seen{PID: pid}
			s.read(filepath.Join(dir, e.Name()))
			seen = append(seen, s)
		}
	}
	return seen, nil
}

// read takes what the file says, of several refusals the last.
func (s *Seen) read(path string) {
	f, err := recording.OpenRegular(path)
	if err != nil {
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSaid))
	if err != nil {
		return
	}
	for line := range strings.Lines(strings.ToValidUTF8(string(text), "?")) {
		line = strings.TrimSpace(line)
		if reason, ok := strings.CutPrefix(line, "refused: "); ok {
			s.Refused = reason
		} else if module, ok := strings.CutPrefix(line, "loader: "); ok {
			s.Loaders = append(s.Loaders, module)
		}
	}
}

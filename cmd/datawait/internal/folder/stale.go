package folder

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// staleAfter is how long the rings of a run whose agent was killed are kept for `datawait report`.
const staleAfter = 24 * time.Hour

// removeStale deletes the folders of old runs in base whose agent and job are gone: rings lie in memory.
func removeStale(base string, now time.Time) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || !strings.HasPrefix(name, "run-") && !strings.HasPrefix(name, "job-") {
			continue
		}
		if dir := filepath.Join(base, name); isStale(dir, now) {
			os.RemoveAll(dir)
		}
	}
}

// isStale reports whether nobody uses a run folder any more.
func isStale(dir string, now time.Time) bool {
	info, err := os.Lstat(dir)
	if err != nil || now.Sub(info.ModTime()) < staleAfter {
		return false
	}
	if _, err := os.Lstat(filepath.Join(dir, lockName)); err != nil || InUse(dir) {
		return false // not one of ours, or at work
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if pid, start, ok := recording.ParseRingName(e.Name()); ok && lives(pid, start) {
			return false
		}
	}
	return true
}

func lives(pid int, start uint64) bool {
	p := LookUp(pid)
	return p.Start != "" && p.Start == formatTicks(start)
}

package folder

import (
	"os"
	"path/filepath"
	"slices"
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
	if err != nil || now.Sub(info.ModTime()) < staleAfter || InUse(dir) {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil || !isOurs(entries) {
		return false
	}
	for _, e := range entries {
		if pid, start, ok := recording.ParseRingName(e.Name()); ok && lives(pid, start) {
			return false
		}
	}
	return true
}

// made are the names that datawait and its hook give to files of a run folder.
var made = []string{lockName, hookName, recording.ControlName, "rank-*", "seen-*", "ring-*.dwr", "gpu-*.busy", ".hook-*", ".control-*"}

// isOurs reports whether datawait made a folder: its lock lies in it or, where datawait was killed before that, nothing else.
func isOurs(entries []os.DirEntry) bool {
	known := func(name string) bool {
		return slices.ContainsFunc(made, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok })
	}
	others := false
	for _, e := range entries {
		if e.Name() == lockName {
			return true
		}
		others = others || !known(e.Name())
	}
	return !others
}

// lives reports whether a process runs. One that ended and was never waited for (a container whose first process does not do
// that) is gone.
func lives(pid int, start uint64) bool {
	p := LookUp(pid)
	return p.Start != "" && p.Start == formatTicks(start) && !p.Ended
}

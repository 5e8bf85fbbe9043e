package soak

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A scheduler may end a job in the moment it starts it. Nothing of that stays in shared memory.
func TestTERMInTheFirstMillisecondsLeavesNoRunFolder(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 3 * time.Millisecond {
		dir := t.TempDir()
		c := exec.Command("datawait", "record", "-q", "--grace", "2s", "--out", filepath.Join(dir, "run"), "--", "sleep", "30")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		err := c.Wait()
		if got := statusOf(err); got != 128+int(syscall.SIGTERM) {
			t.Errorf("TERM after %v: %v", after, err)
		}
		if left := runFolders(c.Process.Pid); len(left) > 0 {
			t.Errorf("TERM after %v: left %v", after, left)
		}
	}
}

// runFolders are those of the wrapper with this pid.
func runFolders(pid int) (dirs []string) {
	for _, parent := range spoolParents() {
		found, _ := filepath.Glob(filepath.Join(parent, "datawait-*", "run-"+strconv.Itoa(pid)+"-*"))
		dirs = append(dirs, found...)
	}
	return dirs
}

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/recording"
)

// Run is the folder of one running job on this node: its rings, control page, busy logs and hook. All wrappers of the
// job on this node use the same one; the one that gets the lock observes.
type Run struct {
	Dir  string
	lock *os.File // held while this process is the node's agent
}

const (
	lockName = "agent.lock"
	hookName = "hook"
	// shmRoom is what must be free in /dev/shm: rings take a few MiB per process, but PyTorch's own workers pass
	// batches through the same memory and die when it is full.
	shmRoom = 512 << 20
)

// OpenRun makes or finds the folder of the job called key.
func OpenRun(key string) (*Run, error) {
	base, err := base()
	if err != nil {
		return nil, err
	}
	removeStale(base, time.Now())
	dir := filepath.Join(base, key)
	if err := ownFolder(dir); err != nil {
		return nil, err
	}
	return &Run{Dir: dir}, nil
}

// OpenOwn makes the folder of a wrapper that shares its job with no other. The name may be taken: containers share a /dev/shm, and
// their processes have the same numbers.
func OpenOwn(self Process) (*Run, error) {
	base, err := base()
	if err != nil {
		return nil, err
	}
	removeStale(base, time.Now())
	dir, err := makeOwn(filepath.Join(base, "run-"+self.String()))
	if err != nil {
		return nil, err
	}
	return &Run{Dir: dir}, nil
}

// makeOwn makes a private folder that nobody else has, under this name or one like it.
func makeOwn(name string) (string, error) {
	dir := name
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o700)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
		dir = fmt.Sprintf("%s-%d", name, n)
	}
}

// Claim takes the place of one rank in a job that several wrappers share. It fails if another wrapper has it: then that is
// another job of the same parent, two trainings side by side in one batch script.
func (r *Run) Claim(rank string) bool {
	f, err := os.OpenFile(filepath.Join(r.Dir, "rank-"+rank), os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// InUse reports whether an agent works with the run folder dir.
func InUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// base returns datawait's own folder in shared memory if that has room, else in a temporary folder on a local disk, and
// where no disk will do in shared memory all the same: rings are made to fit.
func base() (string, error) {
	name := "datawait-" + strconv.Itoa(os.Geteuid())
	parents := []string{os.TempDir(), "/tmp", "/dev/shm"}
	if hasRoom("/dev/shm") {
		parents = []string{"/dev/shm", os.TempDir(), "/tmp"}
	}
	var tried error
	for _, parent := range parents {
		if err := mappable(parent); err != nil {
			tried = errors.Join(tried, err)
			continue
		}
		dir := filepath.Join(parent, name)
		if err := ownFolder(dir); err != nil {
			tried = errors.Join(tried, err)
			continue
		}
		return dir, nil
	}
	return "", fmt.Errorf("finding a folder for the job's rings: %w", tried)
}

func hasRoom(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Bavail*uint64(s.Bsize) >= shmRoom
}

// ownFolder makes a folder of mode 0700, or checks that one that exists is a real folder, ours and closed to others:
// anyone may make names in /dev/shm and /tmp.
func ownFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a private folder of this user", dir)
	}
	return nil
}

// Elect tries to become the node's agent for this job. Only one process holds the lock; it is released when that
// process ends, however it ends.
func (r *Run) Elect() (bool, error) {
	f, err := os.OpenFile(filepath.Join(r.Dir, lockName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, fmt.Errorf("electing the node's agent: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return false, nil
	}
	if err != nil {
		f.Close()
		return false, fmt.Errorf("electing the node's agent: %w", err)
	}
	r.lock = f
	return true, nil
}

// Inherited reports whether another agent worked in the folder before: it died, and the job goes on.
func (r *Run) Inherited() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, recording.ControlName))
	return err == nil
}

// Hook returns the folder the hook is unpacked to, after calling extract on a fresh folder if nobody did before.
func (r *Run) Hook(extract func(dir string) error) (string, error) {
	dir := filepath.Join(r.Dir, hookName)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fresh, err := os.MkdirTemp(r.Dir, ".hook-*")
	if err != nil {
		return "", fmt.Errorf("unpacking the hook: %w", err)
	}
	if err := extract(fresh); err != nil {
		os.RemoveAll(fresh)
		return "", fmt.Errorf("unpacking the hook: %w", err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		os.RemoveAll(fresh) // another wrapper was faster
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("unpacking the hook: %w", err)
		}
	}
	return dir, nil
}

// Remove deletes the folder: everything in it was made for this run. It does nothing unless this process is the agent.
func (r *Run) Remove() {
	if r.lock != nil {
		os.RemoveAll(r.Dir)
		r.lock.Close()
	}
}

// Keep leaves the folder where it is, for `datawait report`, and lets go of the lock.
func (r *Run) Keep() {
	if r.lock != nil {
		r.lock.Close()
	}
}

package folder

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a file or folder, which its holder's end releases. busy says that another process has it. Where the
// file system knows no such locks there is none, and busy is false.
func lock(path string) (held *os.File, busy bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errors.Is(err, unix.EWOULDBLOCK)
	}
	return f, false
}

// isLocked reports whether another process holds the lock of path.
func isLocked(path string) bool {
	held, busy := lock(path)
	closeFile(held)
	return busy
}

// lockSoon waits a moment for a lock that is only held while a folder is looked through, and does without if it does not come.
func lockSoon(path string) *os.File {
	for range 100 {
		held, busy := lock(path)
		if !busy {
			return held
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

func closeFile(f *os.File) {
	if f != nil {
		f.Close()
	}
}

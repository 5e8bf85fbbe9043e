package host

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/unit"
)

// shmStep is by how much free shared memory must fall for the note to be written again: a sixteenth of what it says, and a MiB at least.
const (
	shmStep  = 16
	shmLeast = 1 << 20
)

var errNoLimit = errors.New("/dev/shm has no size of its own")

// sharedMemory notes how large the job's /dev/shm is, and the least that was free in it at any sample. PyTorch's workers pass finished tensors
// through it (torch.multiprocessing, "Sharing strategies"), and a worker that finds no room there is ended by SIGBUS (F69). It is
// the job's own: containers have one each, 64 MiB where nobody asks for more.
func (h *Host) sharedMemory(head *member) {
	if h.limits.shared != head.start { // another job, or none before
		h.limits.shared = head.start
		describe(h, &h.note.SharedBytes, unit.None[uint64]("not read yet"))
		describe(h, &h.note.SharedFree, unit.None[uint64]("not read yet"))
	}
	size, free, err := roomOf(h.files.ofProcess(head.pid, "root/dev/shm"))
	h.because("shared memory", reason(err))
	if err != nil {
		return
	}
	describe(h, &h.note.SharedBytes, unit.Some(size))
	least, seen := h.note.SharedFree.Get()
	if !seen || lessFree(least, free) {
		describe(h, &h.note.SharedFree, unit.Some(free))
	}
}

// lessFree says whether so much less is free than before that it is worth a note.
func lessFree(least, free uint64) bool {
	return free < least && (free < shmLeast || least-free >= max(shmLeast, least/shmStep))
}

// roomOf returns the size of the file system of a path, and what is free of it for everybody, in bytes. A tmpfs without a limit tells 0 blocks
// (Linux, Documentation/filesystems/tmpfs.rst, "size").
func roomOf(path string) (size, free uint64, err error) {
	var s unix.Statfs_t
	for {
		err = unix.Statfs(path, &s)
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("the room in %s: %w", path, err)
	case s.Blocks == 0 || s.Bsize <= 0:
		return 0, 0, errNoLimit
	}
	return s.Blocks * uint64(s.Bsize), s.Bavail * uint64(s.Bsize), nil
}

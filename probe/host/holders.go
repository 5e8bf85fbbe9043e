package host

import (
	"bytes"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDescriptors bounds how many descriptors of one process are looked at. A main process that shares tensors by descriptor
// holds thousands of them.
const maxDescriptors = 8192

// holderSearch finds which processes of the job hold sockets, by inode, through the links in /proc/PID/fd
// (proc_pid_fd(5)). Each link is a system call, so only sockets whose holder is not known are searched for.
type holderSearch struct {
	found map[uint32]*member // wanted inodes; nil while not found
	fds   []int
}

func (s *holderSearch) reset() {
	if s.found == nil {
		s.found = map[uint32]*member{}
	}
	clear(s.found)
}

func (s *holderSearch) want(inode uint32) { s.found[inode] = nil }

func (s *holderSearch) wants() bool { return len(s.found) > 0 }

// of returns the pid of the holder, 0 if none was found.
func (s *holderSearch) of(inode uint32) int {
	if m := s.found[inode]; m != nil {
		return m.pid
	}
	return 0
}

// search looks through the descriptors of every process of the job, and tells for each whether that was possible.
func (s *holderSearch) search(f *files, t *tree, tell func(*member, error)) {
	for _, pid := range t.order {
		m := t.members[pid]
		tell(m, s.searchProcess(f, m))
	}
}

func (s *holderSearch) searchProcess(f *files, m *member) error {
	folder := f.ofProcess(m.pid, "fd")
	var err error
	if s.fds, err = f.numbers(folder, s.fds[:0]); err != nil {
		return err
	}
	if len(s.fds) > maxDescriptors {
		return fmt.Errorf("searching %s: more than %d descriptors", folder, maxDescriptors)
	}
	dir, err := open(folder, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("searching %s: %w", folder, err)
	}
	defer unix.Close(dir)
	var link [64]byte
	for _, fd := range s.fds {
		n, err := unix.Readlinkat(dir, strconv.Itoa(fd), link[:])
		if err != nil { // closed meanwhile
			continue
		}
		if inode, ok := parseSocketLink(link[:n]); ok {
			s.hold(inode, m)
		}
	}
	return nil
}

// hold notes a holder. Of several, the one that started first made the socket, and the others inherited it.
func (s *holderSearch) hold(inode uint32, m *member) {
	if before, wanted := s.found[inode]; wanted && (before == nil || m.start < before.start) {
		s.found[inode] = m
	}
}

// parseSocketLink reads "socket:[4026531]".
func parseSocketLink(b []byte) (inode uint32, ok bool) {
	rest, ok := bytes.CutPrefix(b, []byte("socket:["))
	if !ok {
		return 0, false
	}
	number, ok := bytes.CutSuffix(rest, []byte("]"))
	if !ok {
		return 0, false
	}
	v, ok := decimal(number)
	if !ok || v > 1<<32-1 {
		return 0, false
	}
	return uint32(v), true
}

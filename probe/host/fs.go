package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// FS says where the kernel's files are. Tests point it at folders of fixtures.
type FS struct {
	Proc   string // stands for /proc
	Sys    string // stands for /sys
	Cgroup string // stands for /sys/fs/cgroup, the folder under which control groups are mounted
}

// Local returns the file systems of this machine.
func Local() FS { return FS{Proc: "/proc", Sys: "/sys", Cgroup: defaultCgroupMount} }

const defaultCgroupMount = "/sys/fs/cgroup"

// maxFile bounds what is read of one file. The largest file read here, /proc/stat of a machine with thousands of cores, has
// a few hundred KiB.
const maxFile = 8 << 20

// files reads small kernel files into one buffer that it keeps. What read returns is valid until the next read.
type files struct {
	FS
	buf     []byte
	path    []byte
	holding int // descriptors kept open, see held
}

func newFiles(fs FS) *files { return &files{FS: fs, buf: make([]byte, 16<<10)} }

// read returns the file's bytes. It calls the kernel directly: os.Open would offer every file to the poller first, one
// system call in four for files that are read hundreds of times a second.
func (f *files) read(path string) ([]byte, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer unix.Close(fd)
	n := 0
	for {
		if n == len(f.buf) {
			if n >= maxFile {
				return nil, fmt.Errorf("reading %s: larger than %d bytes", path, maxFile)
			}
			f.buf = append(f.buf, make([]byte, len(f.buf))...)
		}
		got, err := unix.Read(fd, f.buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if got == 0 {
			return f.buf[:n], nil
		}
		n += got
	}
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// ofProcess returns the path of a file of one process, "/proc/PID/name".
func (f *files) ofProcess(pid int, name string) string {
	f.path = append(f.path[:0], f.Proc...)
	f.path = append(f.path, '/')
	f.path = strconv.AppendInt(f.path, int64(pid), 10)
	f.path = append(f.path, '/')
	f.path = append(f.path, name...)
	return string(f.path)
}

// numbers lists the entries of a folder whose names are numbers, in the order of the folder: processes of /proc, threads of
// /proc/PID/task, descriptors of /proc/PID/fd. The slice is appended to into.
func (f *files) numbers(path string, into []int) ([]int, error) {
	fd, err := open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return into, fmt.Errorf("listing %s: %w", path, err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.ReadDirent(fd, f.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return into, fmt.Errorf("listing %s: %w", path, err)
		}
		if n == 0 {
			return into, nil
		}
		for entries := f.buf[:n]; len(entries) > 0; {
			var name []byte
			name, entries = nextEntry(entries)
			if v, ok := decimal(name); ok && v < 1<<31 {
				into = append(into, int(v))
			}
		}
	}
}

// nextEntry returns the name of the first of some folder entries, as getdents64(2) writes them: inode and offset, the length of the
// entry, its type, and a name that ends with a zero byte. unix.ParseDirent makes a string of each, and there are thousands of processes.
func nextEntry(b []byte) (name, rest []byte) {
	const lengthAt, nameAt = 16, 19
	if len(b) < nameAt {
		return nil, nil
	}
	length := int(binary.NativeEndian.Uint16(b[lengthAt:]))
	if length < nameAt || length > len(b) {
		return nil, nil
	}
	name, _, _ = bytes.Cut(b[nameAt:length], []byte{0})
	return name, b[length:]
}

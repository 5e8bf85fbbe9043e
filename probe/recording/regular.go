package recording

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OpenRegular opens a regular file for reading and refuses everything else: what stands in a spool or a recording was put
// there by someone else. A link is not followed, and opening a FIFO does not wait for its writer.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ownedBySpool refuses a file that belongs neither to us nor to the owner of its folder: someone else could have put it
// into a folder that is open to all.
func ownedBySpool(path string, info fs.FileInfo) error {
	owner, ok := ownerOf(info)
	if !ok || owner == os.Geteuid() {
		return nil
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if of, ok := ownerOf(folder); ok && of == owner {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d", path, owner)
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

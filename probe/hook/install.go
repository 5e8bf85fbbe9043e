package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrForeign is that a folder holds something else than this version of the hook.
var ErrForeign = errors.New("holds something else than this version of the hook")

// unfinished begins the names of folders in which an Install is at work, or was when it was killed.
const unfinished = ".datawait-hook-"

// Install lays the hook out in dir for all users of a machine or a pod: every file may be read by all and written by its owner.
// dir may exist, be a mount point, and hold this very hook already; then nothing is done and added is false. A Python that starts
// meanwhile finds all of the hook or none: the package is moved in whole, and sitecustomize.py, which loads it, last.
//
// Another version is not replaced. The hook imports parts of itself when they are needed, so a job that began with one version
// would go on with the other.
func Install(dir string) (added bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("making the hook's folder: %w", err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return false, fmt.Errorf("opening the hook's folder: %w", err)
	}
	defer folder.Close() // and lets go of the lock
	// Two at once would each take what the other has begun for litter. Where nothing can be locked there is hardly another.
	_ = unix.Flock(int(folder.Fd()), unix.LOCK_EX)
	packed, site, err := found(dir)
	if err != nil || packed && site {
		return false, err
	}
	return true, add(dir, packed)
}

// add puts into dir what is missing.
func add(dir string, packed bool) error {
	fresh, err := os.MkdirTemp(dir, unfinished)
	if err != nil {
		return fmt.Errorf("laying out the hook: %w", err)
	}
	defer os.RemoveAll(fresh)
	if err := layOut(fresh, 0o755, 0o644); err != nil {
		return err
	}
	for _, name := range []string{Package, Site} {
		if name == Package && packed {
			continue
		}
		if err := os.Rename(filepath.Join(fresh, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("laying out the hook: %w", err)
		}
	}
	return nil
}

// found says what of this hook lies in dir, after removing what a killed Install left. An error if there is anything else.
func found(dir string) (packed, site bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false, fmt.Errorf("reading the hook's folder: %w", err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == Package:
			packed = true
		case name == Site:
			site = true
		case strings.HasPrefix(name, unfinished):
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return false, false, fmt.Errorf("clearing up in the hook's folder: %w", err)
			}
		case name == "lost+found" || name == "__pycache__": // of a file system's own root; of a Python that ran as this user
		default:
			return false, false, fmt.Errorf("%s %w: %s", dir, ErrForeign, name)
		}
	}
	return packed, site, same(dir, packed, site)
}

// same compares what lies in dir with the files of this hook, byte for byte. Files that are not the hook's count as well: an
// older version may have had more.
func same(dir string, packed, site bool) error {
	ours := map[string]bool{}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := target(path)
		ours[name] = true
		if name == Site && !site || name != Site && !packed {
			return nil
		}
		want, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("%s %w: %s", dir, ErrForeign, name)
		}
		return nil
	})
	if err != nil || !packed {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(dir, Package))
	if err != nil {
		return fmt.Errorf("reading the hook's folder: %w", err)
	}
	for _, e := range entries {
		if name := filepath.Join(Package, e.Name()); !ours[name] && e.Name() != "__pycache__" {
			return fmt.Errorf("%s %w: %s", dir, ErrForeign, name)
		}
	}
	return nil
}

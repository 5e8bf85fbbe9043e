// Package hook carries the Python hook inside the binary and lays it out for a training job to load.
//
// The files are the wheel's, byte for byte. They are listed by explicit globs: embedding a whole folder leaves out
// __init__.py, and `all:` takes __pycache__ along.
package hook

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed datawait/*.py datawait/__init__.py attach/sitecustomize.py
var files embed.FS

// What a folder holds into which the hook was laid out.
const (
	Package = "datawait"
	Site    = "sitecustomize.py" // loads the package into an unmodified script
)

// Files holds the package `datawait` and, in attach, the sitecustomize module that loads it into an unmodified script.
func Files() fs.FS { return files }

// Extract lays the hook out in dir, which it makes with mode 0700: sitecustomize.py beside the package datawait.
// dir then goes first on PYTHONPATH.
func Extract(dir string) error { return layOut(dir, 0o700, 0o600) }

// layOut writes every file with these modes, whatever the umask takes away.
func layOut(dir string, folders, texts fs.FileMode) error {
	made := filepath.Join(dir, Package)
	if err := os.MkdirAll(made, folders); err != nil {
		return fmt.Errorf("making the hook's folder: %w", err)
	}
	if err := errors.Join(os.Chmod(dir, folders), os.Chmod(made, folders)); err != nil {
		return fmt.Errorf("making the hook's folder: %w", err)
	}
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Join(dir, target(path))
		if err := errors.Join(os.WriteFile(name, text, texts), os.Chmod(name, texts)); err != nil {
			return fmt.Errorf("laying out the hook: %w", err)
		}
		return nil
	})
}

// target returns where an embedded file goes: what is in attach moves to the top.
func target(path string) string {
	if filepath.Dir(path) == "attach" {
		return filepath.Base(path)
	}
	return path
}

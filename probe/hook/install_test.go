package hook

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// installed fails unless dir holds the hook, whole, for everybody to read, and nothing else.
func installed(t *testing.T, dir string) {
	t.Helper()
	var want []string
	for _, name := range names(t, Files()) {
		want = append(want, strings.TrimPrefix(name, "attach/"))
	}
	slices.Sort(want)
	if got := names(t, os.DirFS(dir)); !slices.Equal(got, want) {
		t.Errorf("installed %v\nwant %v", got, want)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if entry.IsDir() {
			want = 0o755
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInstall(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // a careful root's
	dir := filepath.Join(t.TempDir(), "opt", "datawait")
	if added, err := Install(dir); err != nil || !added {
		t.Fatalf("added %v, %v", added, err)
	}
	installed(t, dir)
	before, err := os.Stat(filepath.Join(dir, Package))
	if err != nil {
		t.Fatal(err)
	}
	if added, err := Install(dir); err != nil || added {
		t.Errorf("a second time: added %v, %v", added, err)
	}
	after, err := os.Stat(filepath.Join(dir, Package))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("a second time made another folder (%v)", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A container is killed in the middle, and its volume is there when it starts again.
func TestInstallGoesOnWhereOneWasKilled(t *testing.T) {
	for name, begun := range map[string]func(dir string) error{
		"before anything was moved": func(dir string) error { return layOut(filepath.Join(dir, unfinished+"1"), 0o755, 0o644) },
		"before the last": func(dir string) error {
			return errors.Join(layOut(dir, 0o755, 0o644), os.Remove(filepath.Join(dir, Site)))
		},
		"in the middle of a file": func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, unfinished+"2", Package), 0o700),
				os.WriteFile(filepath.Join(dir, unfinished+"2", Package, "ring.py"), []byte("half"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := begun(dir); err != nil {
				t.Fatal(err)
			}
			if added, err := Install(dir); err != nil || !added {
				t.Fatalf("added %v, %v", added, err)
			}
			installed(t, dir)
		})
	}
}

func TestInstallRefusesWhatIsNotItsOwn(t *testing.T) {
	for name, text := range map[string]string{
		"train.py":                 "print(1)",
		Site:                       "import theirs",
		Package + "/ring.py":       "another version",
		Package + "/gone_since.py": "a module of an older version",
		Package:                    "a file",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if name == Package+"/gone_since.py" {
				if _, err := Install(dir); err != nil {
					t.Fatal(err)
				}
			}
			write(t, dir, name, text)
			before := names(t, os.DirFS(dir))
			added, err := Install(dir)
			if !errors.Is(err, ErrForeign) && name != Package || err == nil || added {
				t.Errorf("added %v, %v", added, err)
			}
			if after := names(t, os.DirFS(dir)); !slices.Equal(before, after) {
				t.Errorf("there was %v, now %v", before, after)
			}
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
				t.Errorf("%s is now %q (%v)", name, got, err)
			}
		})
	}
}

// What file systems and Pythons leave in any folder is no reason to refuse it.
func TestInstallBesideWhatIsInEveryVolume(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if added, err := Install(dir); err != nil || !added {
		t.Fatalf("added %v, %v", added, err)
	}
	write(t, dir, Package+"/__pycache__/ring.cpython-312.pyc", "")
	if added, err := Install(dir); err != nil || added {
		t.Errorf("added %v, %v", added, err)
	}
}

func TestOneOfManyInstallsAtOnceIsEnough(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	var done atomic.Int32
	for range 8 {
		all.Go(func() {
			added, err := Install(dir)
			if err != nil {
				t.Error(err)
			}
			if added {
				done.Add(1)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 {
		t.Errorf("%d of them put it there", done.Load())
	}
	installed(t, dir)
}

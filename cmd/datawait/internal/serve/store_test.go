package serve

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/datawait/datawait/analysis/live"
)

func opened(t *testing.T, dir string) *store {
	t.Helper()
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

func TestStoreIsForOneAgent(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	if _, err := openStore(dir); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
	s.close() // as the kernel does for a process that is killed
	opened(t, dir)
}

// Whatever lies where the state should be, an agent begins, with counters at 0, and keeps a state of its own.
func TestAStateThatIsNone(t *testing.T) {
	good := `{"schema":"` + live.StateSchema + `","boot_id":"another","at":1}`
	for name, make := range map[string]func(string) error{
		"torn":            func(p string) error { return os.WriteFile(p, []byte(good[:20]), 0o600) },
		"of another boot": func(p string) error { return os.WriteFile(p, []byte(good), 0o600) },
		"another schema":  func(p string) error { return os.WriteFile(p, []byte(`{"schema":"x"}`), 0o600) },
		"no JSON":         func(p string) error { return os.WriteFile(p, []byte("\x00\xff"), 0o600) },
		"deep":            func(p string) error { return os.WriteFile(p, []byte(strings.Repeat(`{"a":[`, 1<<16)), 0o600) },
		"empty":           func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"huge":            func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<40)) },
		"a link":          func(p string) error { return os.Symlink("/dev/zero", p) },
		"a pipe":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Socket = "-"
			said := &log{}
			o.Log = slog.New(slog.NewTextHandler(said, nil))
			if err := errors.Join(os.MkdirAll(o.State, 0o755), make(filepath.Join(o.State, stateName))); err != nil {
				t.Fatal(err)
			}
			a, err := newAgent(o.complete())
			if err != nil {
				t.Fatal(err)
			}
			defer a.close()
			if !strings.Contains(said.String(), "counters begin at 0") {
				t.Errorf("it says nothing of it: %s", said)
			}
			if err := a.keep(); err != nil {
				t.Fatal(err)
			}
			if s, err := a.store.read(); err != nil || s.BootID != a.boot {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// A disk that is full: what was kept before is below what is shown since, so it goes; and once there is room it is kept again.
func TestAStateThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("no small disk can be made here: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	s := opened(t, dir)
	state := &live.State{Schema: live.StateSchema, BootID: "boot"}
	if err := s.write(state); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk takes everything: %v", err)
	}
	if err := s.write(state); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if old, err := s.read(); old != nil || err != nil {
		t.Errorf("a stale state is left: %+v, %v", old, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 { // the lock and the filler
		t.Errorf("%v", entries)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.write(state); err != nil {
		t.Error(err)
	}
	if now, err := s.read(); now == nil || err != nil {
		t.Errorf("%+v, %v", now, err)
	}
}

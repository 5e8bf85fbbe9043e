package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/recording"
)

// store is the folder of what outlives the agent. One agent has it at a time.
type store struct {
	dir  string
	lock *os.File
}

const (
	stateName = "state.json"
	lockName  = "agent.lock"
	mostState = 64 << 20 // bytes
)

// ErrTaken is that another agent works with the folder.
var ErrTaken = errors.New("another datawait serve works with it")

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the state folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrTaken
		}
		return nil, fmt.Errorf("opening the state folder %s: %w", dir, err)
	}
	return &store{dir, f}, nil
}

func (s *store) path(name string) string { return filepath.Join(s.dir, name) }

// read returns what an earlier agent left, nil if none did.
func (s *store) read() (*live.State, error) {
	f, err := recording.OpenRegular(s.path(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > mostState {
		return nil, fmt.Errorf("reading the state: %s is no state of this program", s.path(stateName))
	}
	state := &live.State{}
	if err := json.NewDecoder(f).Decode(state); err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	return state, nil
}

// write keeps the state. If that fails the old one is taken away: an agent that went on from it would show counters below those that were
// scraped. A crash of the machine may lose it, but then the jobs are gone too.
func (s *store) write(state *live.State) error {
	err := s.replace(state)
	if err != nil {
		if rerr := os.Remove(s.path(stateName)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return fmt.Errorf("keeping the counters: %w", err)
	}
	return nil
}

func (s *store) replace(state *live.State) error {
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	fresh := s.path(stateName + ".new")
	if err := os.WriteFile(fresh, b, 0o600); err != nil {
		os.Remove(fresh)
		return err
	}
	return os.Rename(fresh, s.path(stateName))
}

// there reports whether a state lies in the folder.
func (s *store) there() bool {
	_, err := os.Lstat(s.path(stateName))
	return !errors.Is(err, fs.ErrNotExist)
}

func (s *store) close() error { return s.lock.Close() }

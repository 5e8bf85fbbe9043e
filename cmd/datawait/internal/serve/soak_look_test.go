package serve

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/datawait/datawait/cmd/datawait/internal/shelf"
)

// look is what an agent takes at one time.
type look struct {
	heap              uint64 // bytes
	files, goroutines int
	state, page       int   // bytes
	shelved           int64 // bytes
	folders           int   // of recordings
}

func (s *soak) look() (l look) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.heap, l.goroutines, l.page = m.HeapAlloc, runtime.NumGoroutine(), s.page()
	open, err := os.ReadDir("/proc/self/fd")
	s.ok(err)
	l.files = len(open)
	state, err := os.Stat(s.agent.store.path(stateName))
	s.ok(err)
	l.state = int(state.Size())
	recordings := s.agent.store.path(shelf.Recordings)
	s.ok(filepath.WalkDir(recordings, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if filepath.Dir(path) == recordings {
				l.folders++
			}
			return err
		}
		info, err := d.Info()
		if err == nil {
			l.shelved += info.Size()
		}
		return err
	}))
	return l
}

// usual is the median of each part.
func usual(looks []look) look {
	middle := func(of func(look) int64) int64 {
		var all []int64
		for _, l := range looks {
			all = append(all, of(l))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return look{heap: uint64(middle(func(l look) int64 { return int64(l.heap) })), files: int(middle(func(l look) int64 { return int64(l.files) })),
		goroutines: int(middle(func(l look) int64 { return int64(l.goroutines) })), state: int(middle(func(l look) int64 { return int64(l.state) })),
		page: int(middle(func(l look) int64 { return int64(l.page) })), shelved: middle(func(l look) int64 { return l.shelved }),
		folders: int(middle(func(l look) int64 { return int64(l.folders) }))}
}

package analysis

import (
	"slices"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// TestSharedMemory: four workers with two batches of 1 MiB each ahead fill 9 MiB with the one in use. The newest note counts.
func TestSharedMemory(t *testing.T) {
	for _, c := range []struct {
		name  string
		notes []recording.HostNote
		given bool
	}{
		{"nobody looked", []recording.HostNote{{}}, false},
		{"64 MiB", []recording.HostNote{{SharedBytes: unit.Some(uint64(64 << 20)), SharedFree: unit.Some(uint64(50 << 20))}}, false},
		{"8 MiB", []recording.HostNote{{SharedBytes: unit.Some(uint64(8 << 20)), SharedFree: unit.Some(uint64(5 << 20))}}, true},
		{"64 MiB that something else fills", []recording.HostNote{
			{SharedBytes: unit.Some(uint64(64 << 20)), SharedFree: unit.Some(uint64(50 << 20))},
			{SharedBytes: unit.Some(uint64(64 << 20)), SharedFree: unit.Some(uint64(3 << 20))},
		}, true},
	} {
		rec, _ := simulate.Job{Epochs: 2, Steps: 60, Workers: 4, Prefetch: 2, Build: func(int, int, int) int64 { return 8 * simulate.Millisecond },
			Handoff: simulate.Millisecond, Compute: 20 * simulate.Millisecond, SM: 0.9, Window: 20 * simulate.Millisecond,
			Notes: func(m *recording.Memory, agent recording.StreamID) {
				for _, n := range c.notes {
					m.AddNote(agent, n)
				}
			}}.Play()
		r, err := Run([]recording.Reader{rec}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(r.Verdicts, func(v verdict.Verdict) bool { return v.ID == verdict.SHM }); got != c.given {
			t.Errorf("%s: %+v", c.name, r.Verdicts)
		}
	}
}

package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/probe/unit"
)

// TestSharedMemory: two workers with two batches of 8 MiB ahead each, and one in use, are 40 MiB (F69).
func TestSharedMemory(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		size, free float64 // 0 = unknown
		batch      float64
		workers    int
		failed     string
		given      bool
	}{
		{"room for the queues", 64 * mib, 24 * mib, 8 * mib, 2, "", false},
		{"room for most of the queues", 32 * mib, 20 * mib, 8 * mib, 2, "", true},
		{"hardly anything left", 64 * mib, 10 * mib, 8 * mib, 2, "", true},
		{"all of it left", 64 * mib, 64 * mib, 8 * mib, 2, "", false},
		{"it failed", 64 * mib, 10 * mib, 8 * mib, 2, "with status 1", true},
		{"no worker passes anything", 32 * mib, 1 * mib, 8 * mib, 0, "", false},
		{"the size of a batch is not known", 32 * mib, 1 * mib, 0, 2, "", false},
		{"nobody looked", 0, 0, 8 * mib, 2, "", false},
	} {
		f := judge(scenario.S26(), func(f *Facts, p *loader.Parameters) {
			f.Failed = c.failed
			p.Args.Workers, p.Args.Prefetch = c.workers, unit.Some(2)
			if c.batch > 0 {
				p.Batch.Bytes = unit.Some(c.batch)
			}
			if c.size > 0 {
				p.Around.Shared = loader.SharedMemory{Size: unit.Some(c.size), Free: unit.Some(c.free)}
			}
		})
		i := slices.Index(ids(f), SHM)
		if (i >= 0) != c.given {
			t.Errorf("%s: %v", c.name, ids(f))
			continue
		}
		if c.failed != "" && (i != 0 || !strings.Contains(f.Verdicts[0].Title, "the command failed with status 1") || f.Verdicts[0].Confidence != 0.9) {
			t.Errorf("%s: %v %+v", c.name, ids(f), f.Verdicts[0])
		}
	}
}

package fixes

import (
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/probe/unit"
)

// TestRaiseSHM: full queues of 5 batches of 256 MiB do not fit into 1 GiB; 3 GiB hold them twice over. It is no fix of a step, so it has no price.
func TestRaiseSHM(t *testing.T) {
	of := func(size float64) Ranking {
		return rank(scenario.S26(), func(p *loader.Parameters) {
			p.Batch.Bytes, p.Args.Prefetch = unit.Some(256.0*(1<<20)), unit.Some(2)
			p.Around.Shared = loader.SharedMemory{Size: unit.Some(size), Free: unit.Some(size)}
		})
	}
	at := func(r Ranking) int {
		return slices.IndexFunc(r.Unpriced, func(u Unpriced) bool { return u.ID == RaiseSHM })
	}
	small := of(1 << 30)
	if i := at(small); i < 0 || !strings.Contains(small.Unpriced[i].How, "--shm-size 3g") {
		t.Errorf("%+v", small.Unpriced)
	}
	if large := of(8 << 30); at(large) >= 0 {
		t.Errorf("8 GiB are enough: %+v", large.Unpriced)
	}
}

// TestWorkersNeedRoom: a fix that queues more batches than /dev/shm holds says so.
func TestWorkersNeedRoom(t *testing.T) {
	of := func(size float64) string {
		f, _ := find(rank(scenario.S02(1), func(p *loader.Parameters) {
			p.Batch.Bytes, p.Args.Prefetch = unit.Some(10e6), unit.Some(2)
			p.Around.Shared = loader.SharedMemory{Size: unit.Some(size), Free: unit.Some(size)}
		}), MoreWorkers)
		if f.NoRoom != strings.Contains(f.Needs, "raise it first") {
			t.Errorf("%v bytes: %v, %q", size, f.NoRoom, f.Needs)
		}
		return f.Needs
	}
	if got := of(67e6); !strings.HasSuffix(got, "60 MB of /dev/shm for the queued batches (it has 67 MB: raise it first)") {
		t.Errorf("70 MB with the batch in use: %q", got)
	}
	if got := of(1e9); strings.Contains(got, "raise") {
		t.Errorf("%q", got)
	}
}

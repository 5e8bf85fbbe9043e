package analysis

import "github.com/datawait/datawait/analysis/internal/together"

// atOnce bounds what is under way at a time, and so the memory that passes need beside what they keep.
const atOnce = 8

// eachRank runs do for every rank, several at once. What it does must touch that rank alone, so the result is that of one after
// the other.
func (r *run) eachRank(do func(*rank)) {
	parallel(len(r.ranked), func(i int) { do(r.ranked[i]) })
}

// eachDevice is eachRank for GPUs; a GPU's ranks go with it.
func (r *run) eachDevice(do func(*device)) {
	parallel(len(r.devices), func(i int) { do(r.devices[i]) })
}

func parallel(n int, do func(int)) { together.Do(n, atOnce, do) }

package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// part tells what a rank did as it always does from what the cached-data test made it do.
//
//	observed |------------------------------------------------------------|
//	test              ^ began
//	blocks                 [live 1] [cached 2]  [live 3]  [cached 4]
//	live     |========|    |======|             |======|
//
// Between the blocks the test serves from memory, throws batches away or waits for workers: none of that is training.
func (k *rank) part() {
	if k.Begin == load.Unknown {
		return
	}
	if k.TestBegan == load.Unknown {
		k.live = k.live.add(k.Begin, k.End)
		return
	}
	k.live = k.live.add(k.Begin, k.TestBegan)
	for i := range k.Blocks {
		if b := &k.Blocks[i]; counted(b, recording.LegLive) && int64(b.Begin) >= k.TestBegan {
			k.live = k.live.add(max(int64(b.Begin), k.liveEnd()), int64(b.End))
		}
	}
}

// tested reports whether a cached-data test ran.
func (r *run) tested() bool {
	return slices.ContainsFunc(r.ranked, func(k *rank) bool { return k.Begin != load.Unknown && k.TestBegan != load.Unknown })
}

func (k *rank) liveEnd() int64 {
	if n := len(k.live); n > 0 {
		return k.live[n-1].end
	}
	return k.TestBegan
}

// counted reports whether a block of that leg may be used.
func counted(b *recording.Block, leg recording.Leg) bool {
	return recording.Leg(b.Ref) == leg && b.Flags&recording.BlockVoid == 0 && b.Reason == 0 && b.Steps > 0 && b.End > b.Begin
}

package analysis

import (
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// live parts what a rank did as it always does from what the cached-data test made it do.
//
//	observed |------------------------------------------------------------|
//	test              ^ began
//	blocks                 [live 1] [cached 2]  [live 3]  [cached 4]
//	live     |========|    |======|             |======|
//
// Between the blocks the test serves from memory, throws batches away or waits for workers: none of that is training.
func (r *run) live() {
	for _, k := range r.ranked {
		if k.Begin == load.Unknown {
			continue
		}
		if k.TestBegan == load.Unknown {
			k.live = k.live.add(k.Begin, k.End)
			continue
		}
		r.tested = true
		k.live = k.live.add(k.Begin, k.TestBegan)
		for i := range k.Blocks {
			if b := &k.Blocks[i]; counted(b, recording.LegLive) && int64(b.Begin) >= k.TestBegan {
				k.live = k.live.add(max(int64(b.Begin), k.liveEnd()), int64(b.End))
			}
		}
	}
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

package load

import (
	"slices"

	"github.com/datawait/datawait/analysis/reuse"
	"github.com/datawait/datawait/probe/recording"
)

// mostReads bounds the readings kept of one builder. Beyond it the limit on names is halved once more, as the hook does.
const mostReads = 1 << 14

// took keeps a reading of the sample that a builder takes of all it reads. It belongs to the batch before it.
func (b *Builds) took(rec *recording.Record) bool {
	v := rec.Read()
	t, ok := at(v.T)
	if !ok || v.Halvings > 31 {
		return false
	}
	s := &b.Reads
	if h := int(v.Halvings); h > s.Halvings {
		s.lower(h)
	}
	if uint64(v.Hash) >= reuse.Limit(s.Halvings) {
		return true
	}
	epoch := uint32(0)
	if n := len(b.Batches); n > 0 {
		epoch = b.Batches[n-1].Epoch
	}
	s.Readings = append(s.Readings, reuse.Reading{T: t, Name: v.Hash, Epoch: epoch})
	if len(s.Readings) > mostReads {
		s.lower(s.Halvings + 1)
	}
	return true
}

// reads is a sample that keeps within bounds.
type reads struct{ reuse.Sample }

func (s *reads) lower(halvings int) {
	s.Halvings = min(halvings, 31)
	limit := reuse.Limit(s.Halvings)
	s.Readings = slices.DeleteFunc(s.Readings, func(r reuse.Reading) bool { return uint64(r.Name) >= limit })
}

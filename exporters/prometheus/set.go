package prometheus

import (
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/datawait/datawait/analysis/live"
)

// set is what the collector remembers of the series of one subject while the subject is there.
type set struct {
	born   uint64 // the scrape that showed it first
	turn   uint64 // the one that showed it last
	rows   int    // of the snapshot that it was made of
	since  uint64 // ns, of the newest of them
	values values
	labels []*dto.LabelPair // of its values: all its series share them, and so they stay in the cache
	parts  [parts]birth
	slots  [][]slot // by number of family, then of series
	steps  tally
}

// another reports whether a row is not the one that was shown: that was forgotten while nobody scraped, and a job of its name has begun
// anew. Among several that are added up one may be another, and the set goes on.
func (s *set) another(rows int, since uint64) bool {
	return rows == 1 && s.rows == 1 && since != s.since
}

// birth is how far a part of a set has come: not there, 0, or real.
type birth struct {
	there, real bool
	first       uint64 // ns, the snapshot with which it was shown first
}

// real reports whether a part shows its numbers yet. They are 0 in the first scrape, and until every server that scrapes within
// the interval has seen that: increase() knows nothing of a counter before its first sample
// (prometheus.io/docs/prometheus/latest/querying/functions, "increase"). A set that continues what an earlier agent counted has
// been seen before; falling back to 0 it would be a counter that began anew, and all of it would be counted again.
func (s *set) real(p part, at, interval uint64, carried bool) bool {
	b := &s.parts[p]
	switch {
	case !b.there:
		*b = birth{there: true, first: at, real: s.born == s.turn && carried}
	case at >= b.first+interval:
		b.real = true
	}
	return b.real
}

// slot is one series.
type slot struct {
	more    []string // values of labels beside the subject's
	pairs   []*dto.LabelPair
	counted counted
}

// slot returns the series with the number n of a family, with the labels it has now.
func (s *set) slot(f, n int, names []string, subject int, more []string) *slot {
	for len(s.slots) <= f {
		s.slots = append(s.slots, nil)
	}
	for len(s.slots[f]) <= n {
		s.slots[f] = append(s.slots[f], slot{})
	}
	c := &s.slots[f][n]
	if s.labels == nil {
		s.labels = pairs(names[:subject], s.values[:subject])
	}
	if len(more) == 0 {
		c.pairs = s.labels
	} else if c.pairs == nil || !slices.Equal(c.more, more) {
		c.more = slices.Clone(more)
		c.pairs = slices.Concat(s.labels, pairs(names[subject:], c.more))
		slices.SortFunc(c.pairs, byName)
	}
	return c
}

// counted is a counter that never goes back.
type counted struct {
	shown float64
	lift  float64 // what rows had counted that are gone, and that others with the same labels do not count
}

// next returns what is shown now. fewer says that a row that was counted before may be gone: what is left goes on from what was shown.
// A counter that went back without that is in error and waits until it has come so far again.
func (c *counted) next(raw float64, fewer bool) float64 {
	v := raw + c.lift
	if math.IsNaN(v) || math.IsInf(v, 0) || v < c.shown {
		if fewer && v < c.shown {
			c.lift += c.shown - v
		}
		return c.shown
	}
	c.shown = v
	return v
}

// tally is a histogram that never goes back.
type tally struct{ shown, lift live.Durations }

func (t *tally) next(raw live.Durations, fewer bool) live.Durations {
	v := plus(raw, t.lift)
	lack, any := missing(t.shown, v)
	switch {
	case any && fewer:
		t.lift = plus(t.lift, lack)
		v = plus(raw, t.lift)
	case any || math.IsNaN(v.Sum) || math.IsInf(v.Sum, 0):
		return t.shown
	}
	t.shown = v
	return v
}

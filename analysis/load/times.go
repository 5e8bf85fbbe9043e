package load

import (
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// at returns a recorded time; ok is false for one that is unknown or that no clock shows.
func at(t uint64) (ns int64, ok bool) { return int64(t), t < recording.Latest }

// span returns both ends of an interval; ok is false where they contradict each other.
func span(begin, end uint64) (b, e int64, ok bool) {
	return int64(begin), int64(end), begin <= end && end < recording.Latest
}

// maybe returns a time or duration, Unknown for one that was not recorded or cannot be.
func maybe(t uint64) int64 {
	if t >= recording.Latest {
		return Unknown
	}
	return int64(t)
}

// seen widens the observed time of a rank and its node.
func (r *Rank) seen(begin, end int64) {
	if r.Begin == Unknown || begin < r.Begin {
		r.Begin = begin
	}
	r.End = max(r.End, end)
}

func (n *Node) seen(begin, end int64) {
	if n.Begin == Unknown || begin < n.Begin {
		n.Begin = begin
	}
	n.End = max(n.End, end)
}

func seconds(ns uint64) float32 {
	if ns >= recording.Latest || ns == recording.Unknown64 {
		return nan
	}
	return float32(float64(ns) / 1e9)
}

// another appends an entry, of which the caller sets every field: it may hold what was there before. To make an entry and have it copied
// takes several times as long, for the reason told at recording.Record. A full slice is doubled, for append's own growth by a quarter copies the
// millions of entries of a long run five times.
func another[T any](s *[]T) *T {
	n := len(*s)
	if n == cap(*s) {
		*s = slices.Grow(*s, max(64, n))
	}
	*s = (*s)[:n+1]
	return &(*s)[n]
}

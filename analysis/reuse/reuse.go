// Package reuse tells from a sample of readings how much a job reads, how often it reads it again, and what a cache of some size
// would save.
//
// Builders sample by the name of what they read: a name is in the sample for all of them or for none, and every reading of it counts.
// Numbers of names and distances between readings are therefore those of the sample times the inverse of its share (SHARDS:
// Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC Construction with SHARDS", FAST 2015). How many names fall into the sample is
// chance, so every number comes with an interval, and with few names there is none.
package reuse

import (
	"cmp"
	"math"
	"slices"
)

// Reading is one reading of a name that is in the sample.
type Reading struct {
	T     int64 // ns
	Name  uint32
	Epoch uint32
}

// Sample is what one process took. A name is in it whose hash is below 2^(32−Halvings).
type Sample struct {
	Halvings int
	Readings []Reading
}

// Limit is the first hash that is not in a sample whose limit was halved so often.
func Limit(halvings int) uint64 { return 1 << (32 - min(max(halvings, 0), 32)) }

// Fewest is how many names a sample must hold to speak for the others: the number of all names is then known to a third.
const Fewest = 40

// Reuse is what the readings of processes that share a cache come to.
type Reuse struct {
	Share    float64 // of all names that are in the sample
	Readings int     // in the sample
	Names    int     // in the sample
	Again    float64 // share of readings whose name had been read before
	PerEpoch float64 // readings of a name in an epoch in which it is read at all
	Epochs   int     // that readings tell of
	Complete bool    // the last quarter of the readings brought next to no new name: all there is was seen

	distances []float64 // names read between a reading and the one before of the same name, sorted; first readings apart
}

// Study merges the samples of processes that share a cache. ok is false without readings.
func Study(samples []Sample) (r Reuse, ok bool) {
	halvings := 0
	for _, s := range samples {
		halvings = max(halvings, s.Halvings)
	}
	limit := Limit(halvings)
	var all []Reading
	for _, s := range samples {
		for _, reading := range s.Readings {
			if uint64(reading.Name) < limit {
				all = append(all, reading)
			}
		}
	}
	if len(all) == 0 {
		return Reuse{}, false
	}
	slices.SortStableFunc(all, func(a, b Reading) int { return cmp.Compare(a.T, b.T) })
	r = Reuse{Share: float64(limit) / (1 << 32), Readings: len(all)}
	r.count(all)
	r.measure(all)
	return r, true
}

func (r *Reuse) count(all []Reading) {
	type visit struct{ name, epoch uint32 }
	names, visits, epochs := map[uint32]bool{}, map[visit]bool{}, map[uint32]bool{}
	fresh := 0 // names first read in the last quarter
	last := len(all) - len(all)/4
	for i, reading := range all {
		if !names[reading.Name] && i >= last {
			fresh++
		}
		names[reading.Name], visits[visit{reading.Name, reading.Epoch}], epochs[reading.Epoch] = true, true, true
	}
	r.Names, r.Epochs = len(names), len(epochs)
	r.Again = 1 - float64(len(names))/float64(len(all))
	r.PerEpoch = float64(len(all)) / float64(len(visits))
	r.Complete = len(all) >= 4*Fewest && float64(fresh) < 0.05*float64(len(all)-last)
}

// measure finds for every reading how many other names were read since its name was read last.
func (r *Reuse) measure(all []Reading) {
	latest := make(map[uint32]int, r.Names) // position of a name's last reading, which carries its mark
	marks := newTally(len(all))
	for i, reading := range all {
		if p, ok := latest[reading.Name]; ok {
			between := marks.upTo(i) - marks.upTo(p+1)
			r.distances = append(r.distances, float64(between)/r.Share)
			marks.add(p, -1)
		}
		latest[reading.Name] = i
		marks.add(i, 1)
	}
	slices.Sort(r.distances)
}

// All estimates how many names there are in all that was read, with a 95 % interval. ok is false where the sample is too small.
func (r Reuse) All() (names, low, high float64, ok bool) {
	n := float64(r.Names)
	if r.Share == 1 {
		return n, n, n, true
	}
	if r.Names < Fewest {
		return 0, 0, 0, false
	}
	names = n / r.Share
	half := 1.96 * math.Sqrt(n*(1-r.Share)) / r.Share
	return names, names - half, names + half, true
}

// passes is how often all there is must have been read: what comes back first comes from nearby, so that readings which are cut off
// in their second pass would promise a small cache too much.
const passes = 2

// Hits is the share of readings that an LRU cache for so many names serves, of those whose name was read before: what a long run
// comes to. ok is false before everything was read twice, and where the sample is too small.
func (r Reuse) Hits(names float64) (share float64, ok bool) {
	if !r.Complete || float64(r.Readings) < passes*r.PerEpoch*float64(r.Names) || len(r.distances) < Fewest {
		return 0, false
	}
	within, _ := slices.BinarySearch(r.distances, names) // as many others push it out
	return float64(within) / float64(len(r.distances)), true
}

// tally is a Fenwick tree: counts at positions, and their sum up to one.
type tally []int32

func newTally(n int) tally { return make(tally, n+1) }

func (t tally) add(at int, by int32) {
	for i := at + 1; i < len(t); i += i & -i {
		t[i] += by
	}
}

// upTo is the sum of the counts before a position.
func (t tally) upTo(at int) (sum int32) {
	for i := at; i > 0; i -= i & -i {
		sum += t[i]
	}
	return sum
}

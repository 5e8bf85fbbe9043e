package analysis

import (
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
)

const (
	coldTimes = 2.5 // as long as later builds must the first epoch's take
	coldLeast = 2e6 // ns longer
	coldFew   = 8   // builds on either side
)

// cold is a first epoch that is unlike the others: its samples come from a slow store, later ones from a cache. Steady steps leave it
// out, for what it costs is paid once.
type cold struct {
	second int64   // when the second epoch began; 0 = there is none
	until  int64   // the same, where the first one was cold
	times  float64 // as long as later builds
	steps  int     // of the cold epoch
	ns     int64   // that those took
}

// chill looks for a cold epoch. Only loaders that train from worker processes are looked at, and one that has but one epoch tells nothing.
func (k *rank) chill() {
	for _, id := range k.trains.ids {
		l := k.Loader(id)
		if l == nil || len(l.Iterators) < 2 || l.Note.Iterable.Or(false) {
			continue
		}
		second := k.Iterators[l.Iterators[1]].Begin
		times, ok := k.compare(l, second)
		if k.cold.second == 0 {
			k.cold.second = second
		}
		if ok {
			k.cold = cold{second: second, until: second, times: times}
			return
		}
	}
}

// compare is how many times as long a build took before a time as after it, and whether that is a cold epoch.
func (k *rank) compare(l *load.Loader, second int64) (times float64, yes bool) {
	var before, after mean
	for _, builds := range l.Builds {
		for i := range builds.Batches {
			switch b := &builds.Batches[i]; {
			case i == 0 || !k.live.holds(b.Begin): // its first batch opens the dataset
			case b.Begin < second:
				before.add(float64(b.End-b.Begin), 1)
			default:
				after.add(float64(b.End-b.Begin), 1)
			}
		}
	}
	if before.weight < coldFew || after.weight < max(coldFew, before.weight) || after.sum <= 0 {
		return 0, false
	}
	first, later := before.sum/before.weight, after.sum/after.weight
	return first / later, first >= coldTimes*later && first >= later+coldLeast
}

func (c *cold) see(s *step) {
	if s.live && s.end > s.begin && s.begin < c.until {
		c.steps++
		c.ns += s.end - s.begin
	}
}

// found is what the cold epoch took more than later ones, of so much live time.
func (c *cold) found(st *steadyState, live int64) (f loader.Cold) {
	if c.until == 0 || c.steps == 0 || st.steps == 0 || live <= 0 {
		return f
	}
	more := float64(c.ns) - float64(c.steps)*float64(st.time)/float64(st.steps)
	if more <= 0 {
		return f
	}
	return loader.Cold{Times: c.times, Seconds: more / 1e9, Share: more / float64(live)}
}

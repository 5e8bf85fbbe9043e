package analysis

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/analysis/internal/together"
	"github.com/datawait/datawait/analysis/load"
)

// group is a watched GPU and the ranks that use it, or a rank on no such GPU. Its passes need nothing of the others.
type group struct {
	device *device // nil without
	ranks  []*rank
}

// study goes through the groups: of a long job, memory should not hold every step of all ranks. Several are studied side by side; what
// they have in common is added up one after the other, so the result is the same as if they all were.
func (r *run) study() error {
	groups := r.groups()
	errs := make([]error, len(groups))
	atOnce := cmp.Or(r.options.AtOnce, 2)
	spare := make(chan *scratch, atOnce)
	for range atOnce {
		spare <- &scratch{}
	}
	turns := make([]chan struct{}, len(groups)+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[0])
	together.Do(len(groups), atOnce, func(i int) {
		defer close(turns[i+1])
		s := <-spare
		defer func() { spare <- s }()
		g := &groups[i]
		reading, err := g.load(s, i%2 == 0)
		if err == nil {
			g.passes(int64(r.options.IdleAfter))
			if g.device != nil {
				r.show(g.device) // what its counters showed
			}
			r.draw(g)
		}
		<-turns[i]
		if errs[i] = err; err != nil {
			return
		}
		r.job.Reading.Add(reading)
		g.addTo(r.crews)
		g.unload(s)
	})
	return cmp.Or(errs...)
}

// passes is what is found out about a group by itself.
func (g *group) passes(idleAfter int64) {
	for _, k := range g.ranks {
		k.role()     // which loader trains
		k.count()    // its steps
		k.part()     // what was training, and what the cached-data test
		k.chill()    // the first epoch, where it is unlike the others
		k.gather()   // the steps that stand for all others
		k.openings() // the starts of epochs
	}
	if d := g.device; d != nil {
		d.skew()          // how late its counters run
		d.hold()          // when some process held it
		d.book(idleAfter) // where its allocated time went
	}
	for _, k := range g.ranks {
		k.alone(idleAfter) // the steady steps by themselves, where that is not done yet
		k.look()           // what its GPU showed in blocks of the cached-data test
		k.model()          // what the loader's model needs
	}
}

// groups puts ranks and devices together, in the order of the ranks.
func (r *run) groups() (groups []group) {
	of := map[*device]int{}
	for _, k := range r.ranked {
		i, ok := of[k.device]
		if k.device == nil || !ok {
			i = len(groups)
			groups = append(groups, group{device: k.device})
			of[k.device] = i
		}
		groups[i].ranks = append(groups[i].ranks, k)
	}
	for _, d := range r.devices {
		if len(d.ranks) == 0 {
			groups = append(groups, group{device: d})
		}
	}
	return groups
}

// scratch is memory that one group after another uses.
type scratch struct {
	room  load.Room
	waits cumulative
	sent  []int64
	x, y  []float64
}

// load reads what the group did. Every other group begins with its device: the first of a node to do so reads the counters of all its
// devices, for which the one beside it would wait, and has its ranks to read meanwhile.
func (g *group) load(s *scratch, deviceFirst bool) (all load.Reading, err error) {
	parts := make([]func(*load.Room) (load.Reading, error), 0, len(g.ranks)+1)
	for _, k := range g.ranks {
		k.scratch = s
		parts = append(parts, k.Load)
	}
	switch {
	case g.device == nil:
	case deviceFirst:
		parts = slices.Insert(parts, 0, g.device.Load)
	default:
		parts = append(parts, g.device.Load)
	}
	for _, part := range parts {
		reading, err := part(&s.room)
		if err != nil {
			return all, err
		}
		all.Add(reading)
	}
	return all, nil
}

func (g *group) unload(s *scratch) {
	for _, k := range g.ranks {
		k.waits, k.scratch = nil, nil
		k.Unload(&s.room)
	}
	if g.device != nil {
		g.device.Unload(&s.room)
	}
}

package prometheus

import (
	"cmp"
	"slices"
)

// candidate is a subject that would like to be shown.
type candidate struct {
	key   key
	order order
	size  int
	rows  int    // that are this subject
	since uint64 // ns, of the newest of them
	show  func(*page, *set)
}

// candidates makes one of each subject. Rows whose labels are the same are one subject: their counters are added, and it runs if
// one of them does.
func candidates[T any](t *table[T], rows []T) []candidate {
	subjects := make([]T, 0, len(rows))
	at := make(map[values]int, len(rows))
	out := make([]candidate, 0, len(rows))
	for i := range rows {
		v, since := t.values(&rows[i]), uint64(0)
		if t.since != nil {
			since = t.since(&rows[i])
		}
		if n, twice := at[v]; twice {
			t.merge(&subjects[n], &rows[i])
			out[n].rows++
			out[n].since = max(out[n].since, since)
			continue
		}
		at[v] = len(subjects)
		subjects = append(subjects, rows[i])
		out = append(out, candidate{key: key{t.title, v}, size: t.size, rows: 1, since: since})
	}
	for i := range out {
		row, c := &subjects[i], &out[i]
		c.order = t.order(row)
		c.show = func(p *page, set *set) { t.show(p, set, row, c.rows, c.since) }
	}
	return out
}

// admit shows the candidates for which there is room beside the reserved series, and returns how many series had none. Room is
// reckoned with as many series as a subject can have, so that one that is shown stays while it is there. New ones come in
// their order, and the first that does not fit ends it. How the agent does is always shown.
func (c *Collector) admit(p *page, all []candidate, reserved int) (dropped int) {
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	room, full := c.o.Limit-reserved, false
	for _, n := range all {
		if n.order == health || c.sets[n.key] != nil && n.size <= room {
			room -= c.give(n)
		}
	}
	for _, n := range all {
		if !c.has(n) && !full && n.size <= room {
			room -= c.give(n)
		}
		if !c.has(n) {
			full = true
			dropped += n.size
			continue
		}
		n.show(p, c.sets[n.key])
	}
	return dropped
}

// give gives a subject its place in this scrape, and returns how many series that takes.
func (c *Collector) give(n candidate) int {
	s := c.sets[n.key]
	if s == nil || s.another(n.rows, n.since) {
		s = &set{born: c.turn, rows: 1, since: n.since, values: n.key.values}
		c.sets[n.key] = s
	}
	s.turn = c.turn
	return n.size
}

// has reports whether a subject has a place in this scrape.
func (c *Collector) has(n candidate) bool {
	s := c.sets[n.key]
	return s != nil && s.turn == c.turn
}

// forget drops what was remembered of subjects that are not shown: one that comes back is new.
func (c *Collector) forget() {
	for k, s := range c.sets {
		if s.turn != c.turn {
			delete(c.sets, k)
		}
	}
}

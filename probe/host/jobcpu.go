package host

// cpuUse is what one process had used when its stat was read, in ticks.
type cpuUse struct {
	start  uint64
	parent int
	own    uint64
	reaped uint64 // of children it waited for
	at     uint64 // ns
}

// cpuBook holds the CPU time of every process of the job at one scan. Two of them give what the job used between.
type cpuBook map[int]cpuUse

func (t *tree) book() cpuBook {
	b := make(cpuBook, len(t.members))
	for pid, m := range t.members {
		b[pid] = cpuUse{start: m.start, parent: m.parent, own: m.stat.own(), reaped: m.stat.reaped, at: m.at}
	}
	return b
}

// used returns the ticks the job used since an earlier book.
//
// The time of a process that ended in between is not lost where its parent waited for it: it turns up among the parent's
// reaped time, together with what it had used before, which is taken off again. A process that is new counts in full if
// it was forked in between, and not at all if it is merely new to the caller: its past may be hours.
func (b cpuBook) used(since cpuBook) uint64 {
	var own, reaped, ended uint64
	for pid, u := range b {
		before, ok := since[pid]
		switch {
		case ok && before.start == u.start:
			own += known(growth(u.own, before.own))
			reaped += known(growth(u.reaped, before.reaped))
		case b.forkedSince(pid, since):
			own += known(u.own)
			reaped += known(u.reaped)
		}
	}
	for pid, before := range since {
		if u, ok := b[pid]; !ok || u.start != before.start {
			ended += known(sum(before.own, before.reaped))
		}
	}
	if reaped > ended {
		own += reaped - ended
	}
	return own
}

// forkedSince reports whether a process descends from one that was in the earlier book.
func (b cpuBook) forkedSince(pid int, since cpuBook) bool {
	for range len(b) { // a chain of parents cannot be longer, whatever the files say
		u, ok := b[pid]
		if !ok {
			return false
		}
		parent, ok := b[u.parent]
		if !ok {
			return false
		}
		if before, ok := since[u.parent]; ok && before.start == parent.start {
			return true
		}
		pid = u.parent
	}
	return false
}

// known returns a counter's growth for a sum of which single terms may be missing: the sum is then a lower bound.
func known(v uint64) uint64 {
	if v == unknown {
		return 0
	}
	return v
}

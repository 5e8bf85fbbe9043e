package host

import "github.com/datawait/datawait/probe/recording"

// ofRole lists the living members of a role.
func (t *tree) ofRole(role recording.ProcessRole) (found []*member) {
	for _, pid := range t.order {
		if m := t.members[pid]; m.role == role && !m.stat.ended() {
			found = append(found, m)
		}
	}
	return found
}

// loaders lists the processes that build batches: the workers, the main processes where there are none, and where those
// are not known either the processes the caller named.
func (t *tree) loaders() []*member {
	for _, role := range []recording.ProcessRole{recording.RoleWorker, recording.RoleMain} {
		if found := t.ofRole(role); len(found) > 0 {
			return found
		}
	}
	var found []*member
	for _, k := range t.known {
		if m := t.members[k.PID]; m != nil && k.names(m) && !m.stat.ended() {
			found = append(found, m)
		}
	}
	return found
}

// head returns the process whose control group and network stand for the job's; nil while there is none.
func (t *tree) head() *member {
	mains := t.ofRole(recording.RoleMain)
	if len(mains) == 0 {
		mains = t.loaders()
	}
	if len(mains) == 0 {
		return nil
	}
	return mains[0]
}

package load

import "slices"

// clocks finds how far the node's monotonic clock is from wall-clock time: the middle of all its pairs. Wall clocks are
// stepped and slewed, so Drift says how far the pairs disagree.
func (n *Node) clocks() {
	var shifts []int64
	for i := range n.streams {
		for _, c := range n.streams[i].Notes.Clocks {
			m, ok := at(c.Monotonic)
			if ok && c.Realtime < 1<<62 {
				shifts = append(shifts, int64(c.Realtime)-m)
			}
		}
	}
	if m, ok := at(n.Manifest.StartedMonotonic); ok && m > 0 && len(shifts) == 0 && !n.Manifest.StartedAt.IsZero() {
		shifts = append(shifts, n.Manifest.StartedAt.UnixNano()-m)
	}
	if len(shifts) == 0 {
		return
	}
	slices.Sort(shifts)
	n.Shift, n.Clocked = shifts[len(shifts)/2], true
	if len(shifts) > 1 {
		n.Drift = shifts[len(shifts)-1] - shifts[0]
	}
}

// common makes the nodes' clocks one. A node that never read its wall clock is taken to have begun with the first that did.
func (j *Job) common() {
	first := Unknown
	for _, n := range j.Nodes {
		if n.Clocked && n.Begin != Unknown && (first == Unknown || n.Begin+n.Shift < first) {
			first = n.Begin + n.Shift
		}
	}
	for _, n := range j.Nodes {
		if !n.Clocked && n.Begin != Unknown && first != Unknown {
			n.Shift = first - n.Begin
		}
	}
}

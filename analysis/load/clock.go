package load

import (
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// clocks finds how far the node's monotonic clock is from wall-clock time: the middle of all its pairs. Wall clocks are
// stepped and slewed, so Drift says how far the pairs disagree.
func (n *Node) clocks(streams []recording.Stream) {
	var shifts []int64
	for i := range streams {
		for _, c := range streams[i].Notes.Clocks {
			m, ok := at(c.Monotonic)
			if ok && c.Realtime < 1<<62 {
				shifts = append(shifts, int64(c.Realtime)-m)
			}
		}
	}
	if len(shifts) == 0 {
		return
	}
	slices.Sort(shifts)
	n.Shift = shifts[len(shifts)/2]
	if len(shifts) > 1 {
		n.Drift = shifts[len(shifts)-1] - shifts[0]
	}
}

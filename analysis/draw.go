package analysis

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// A picture is a thousand columns wide, and a week has millions of windows and waits. Neighbours are folded until about so many are
// left, but around the moments that deserve a closer look each stands for itself:
//
//	windows   |#######|########|#######|#|#|#|#|#|#|#######|#######|
//	                                     ^ moment
//
// Nothing is folded over a longer gap than one of so many parts of the run.
const (
	drawnWindows = 1 << 14
	drawnWaits   = 1 << 16
	closeWindows = 16 // on each side of a moment, folded or not
	closeWaits   = 1 << 12
)

// drawing is what a rank did as a picture shows it.
type drawing struct{ waits, starts []span }

// draw finds what pictures show of a group.
func (r *run) draw(g *group) {
	if g.device != nil {
		r.drawDevice(g.device)
	}
	if g.ranks != nil && g.ranks[0] == r.ranked[0] {
		r.drawRank(g.ranks[0])
	}
}

// moments are the middle of the run, and where the cached-data test turns from live data to batches in memory.
func (r *run) moments() []int64 {
	at := []int64{r.begin + (r.end-r.begin)/2}
	if len(r.ranked) == 0 {
		return at
	}
	k := r.ranked[0]
	for i := 1; i < len(k.Blocks); i++ {
		live, cached := &k.Blocks[i-1], &k.Blocks[i]
		if counted(live, recording.LegLive) && counted(cached, recording.LegHostCached) {
			return append(at, int64(live.End)+k.Node.Shift)
		}
	}
	return at
}

// around returns the places within reach of the moments, given where each of them is.
func around(moments []int64, reach int, place func(t int64) int) (all spans) {
	var each spans
	for _, t := range moments {
		at := int64(place(t))
		each = append(each, span{at - int64(reach), at + int64(reach) + 1})
	}
	slices.SortFunc(each, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	for _, s := range each {
		all = all.add(s.begin, s.end)
	}
	return all
}

// drawDevice finds what a picture of the device shows.
func (r *run) drawDevice(d *device) {
	windows := d.Windows
	each, part := 1+len(windows)/drawnWindows, (r.end-r.begin)/drawnWindows
	apart := around(r.moments(), closeWindows*each, func(t int64) int { return firstWindow(windows, t-d.Node.Shift) })
	d.drawn = slices.Grow(d.drawn, min(len(windows), len(windows)/each+2*len(r.moments())*(closeWindows*each+1)))
	for i := 0; i < len(windows); {
		next := i + 1
		for next < len(windows) && next-i < each && windows[next].Begin-windows[next-1].End <= part && !apart.holds(int64(i)) && !apart.holds(int64(next)) {
			next++
		}
		d.drawn = append(d.drawn, r.fold(d.Node, windows[i:next]))
		i = next
	}
}

// fold makes one window of neighbours.
func (r *run) fold(n *load.Node, windows []load.Window) Window {
	first, last := &windows[0], &windows[len(windows)-1]
	w := Window{Begin: r.seconds(n, first.Begin), End: r.seconds(n, last.End), SM: float64(first.SM), Resident: float64(first.Resident)}
	if len(windows) == 1 {
		return w
	}
	var sm, resident mean
	for i := range windows {
		one := &windows[i]
		ns := float64(one.End - one.Begin)
		if v := float64(one.SM); v == v {
			if sm.weight == 0 {
				w.Low, w.High = v, v
			}
			w.Low, w.High = min(w.Low, v), max(w.High, v)
			sm.add(v*ns, ns)
		}
		if v := float64(one.Resident); v == v {
			resident.add(v*ns, ns)
		}
	}
	w.Folded, w.SM, w.Resident = len(windows), sm.sum/sm.weight, resident.sum/resident.weight // NaN where none is known
	return w
}

// drawRank finds what a picture of the rank shows. Waits that are folded become one wait as long as they are together.
func (r *run) drawRank(k *rank) {
	waits := 0
	for i := range k.Fetches {
		if f := &k.Fetches[i]; k.training(f) && f.Wait() > 0 {
			waits++
		}
	}
	each, part := 1+waits/drawnWaits, (r.end-r.begin)/drawnWaits
	apart := around(r.moments(), closeWaits+closeWindows*each, func(t int64) int { return firstFetch(k.Fetches, t-k.Node.Shift) })
	folded, alone := each, false
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if !k.training(f) {
			continue
		}
		if f.Is(recording.FetchFirst) && !f.Test() {
			k.drawn.starts = append(k.drawn.starts, span{f.Enter, f.Exit})
		}
		if f.Wait() == 0 {
			continue
		}
		before := alone
		alone = apart.holds(int64(i))
		if n := len(k.drawn.waits); folded < each && !before && !alone && f.Enter-k.drawn.waits[n-1].end <= part {
			k.drawn.waits[n-1].end += f.Wait()
			folded++
			continue
		}
		k.drawn.waits = append(k.drawn.waits, span{f.Enter, f.Exit})
		folded = 1
	}
}

package analysis

import (
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Counter windows of 100 ms and more are longer than steps, so each mixes computing and waiting. Regressing SM activity on the
// share x of a window in which the process waited takes them apart again:
//
//	SM |*  *
//	   |   * *                y(0): activity while computing
//	   |      *  *            y(1): activity while waiting
//	   |          * *
//	   +-------------- x
//	   0             1
//
// The counters' clock may be late. At the true lag the line explains most, at a wrong one x is noise; so the lag that explains
// most is the skew, if it explains clearly more than no lag does.
const (
	unmixWindows = 20   // fewest windows
	unmixHalf    = 0.03 // widest half interval that is shown
	unmixSpread  = 0.03 // least standard deviation of x
	lagWindows   = 500  // windows looked at for the lag
	lagClear     = 0.1  // explained variance that a lag must add
	lagExplains  = 0.3  // explained variance that a lag must reach
	lagSteps     = 10   // per window
	lagReach     = 2    // windows
	lagFiner     = 10   // per step, around the best
)

// skew finds and undoes the lag of the GPU's counters.
func (d *device) skew() {
	if len(d.ranks) != 1 || len(d.Windows) == 0 || d.shared() {
		return
	}
	d.lag, d.doubt = d.late()
	for i := range d.Windows {
		d.Windows[i].Begin -= d.lag
		d.Windows[i].End -= d.lag
	}
}

// late returns by how much the windows are stamped too late, and another lag that explains a little more and not clearly more.
func (d *device) late() (lag, doubt int64) {
	k := d.ranks[0]
	waits := k.waiting()
	length := d.typicalWindow()
	var some []load.Window
	for i := 0; i < len(d.Windows); i += 1 + len(d.Windows)/lagWindows {
		some = append(some, d.Windows[i])
	}
	near := make([]int, len(some))
	best, bestLag, zero := 0.0, int64(0), 0.0
	for step := -lagReach * lagSteps; step <= lagReach*lagSteps; step++ {
		lag := int64(step) * length / lagSteps
		l, ok := k.line(some, waits, lag, near)
		if !ok || l.Slope >= 0 || l.N < unmixWindows {
			continue
		}
		if step == 0 {
			zero = l.R2
		}
		better := l.R2 > best+0.01
		alike := l.R2 > best-0.01 && abs(lag) < abs(bestLag) // of lags that explain alike, as a periodic job has, the nearest
		if better || alike {
			best, bestLag = l.R2, lag
		}
	}
	bestLag = k.refine(some, waits, near, bestLag, length/lagSteps)
	if best >= lagExplains && best >= zero+lagClear {
		return bestLag, bestLag
	}
	return 0, bestLag
}

// refine looks for the lag that explains most closer to the best of those a step apart.
func (k *rank) refine(windows []load.Window, waits *cumulative, near []int, lag, step int64) int64 {
	best, bestLag := 0.0, lag
	for i := int64(-lagFiner + 1); i < lagFiner; i++ {
		at := lag + i*step/lagFiner
		if l, ok := k.line(windows, waits, at, near); ok && l.Slope < 0 && l.N >= unmixWindows && l.R2 > best {
			best, bestLag = l.R2, at
		}
	}
	return bestLag
}

func abs(v int64) int64 { return max(v, -v) }

func (d *device) typicalWindow() int64 {
	lengths := make([]int64, 0, 256)
	for i := 0; i < len(d.Windows); i += 1 + len(d.Windows)/256 {
		lengths = append(lengths, d.Windows[i].End-d.Windows[i].Begin)
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// unmixed is SM activity while the process computes and while it waits.
type unmixed struct{ computing, waiting Est }

// unmix fits the line over all windows and shows it only when it is tight.
func (d *device) unmix() unmixed {
	none := func(why string) unmixed {
		return unmixed{unit.None[stat.Estimate](why), unit.None[stat.Estimate](why)}
	}
	if len(d.ranks) != 1 {
		return none("not one process but several, or none, use this GPU")
	}
	if d.shared() {
		return none(ofAll)
	}
	k := d.ranks[0]
	l, ok := k.line(d.Windows, k.waiting(), 0, nil)
	switch {
	case !ok || l.N < unmixWindows:
		return none("too few counter windows, or too alike, lie in steady training")
	}
	l = k.doubted(l, d)
	switch {
	case l.Zero.Half() > unmixHalf || l.One.Half() > unmixHalf:
		return none("the counter windows are too long to tell computing from waiting")
	}
	grade := d.grade
	if !k.steady.seen() {
		grade = stat.Worse(grade, stat.GradeB) // x is the host's wait: the device may have been busy in it
	}
	return unmixed{
		unit.Some(l.Zero.Clamp(0, 1).Estimate(l.N, grade, d.counters())),
		unit.Some(l.One.Clamp(0, 1).Estimate(l.N, grade, d.counters())),
	}
}

// doubted widens what a line says by what it would say at another lag that the windows do not rule out: at a wrong one, computing and
// waiting look more alike than they are.
func (k *rank) doubted(l stat.Line, d *device) stat.Line {
	if d.doubt == d.lag {
		return l
	}
	if other, ok := k.line(d.Windows, k.waiting(), d.doubt-d.lag, nil); ok && other.N >= unmixWindows {
		l.Zero, l.One = reaching(l.Zero, other.Zero), reaching(l.One, other.One)
	}
	return l
}

// reaching widens an interval so that it holds another one's value.
func reaching(i, other stat.Interval) stat.Interval {
	i.Low, i.High = min(i.Low, other.Value-other.Half()), max(i.High, other.Value+other.Half())
	return i
}

// line regresses SM activity on the share of waiting, over the windows that lie in steady training once they are shifted by lag. Whoever
// tries one lag after another keeps for each window where its waits were found: the next lag moves it by little.
func (k *rank) line(windows []load.Window, waits *cumulative, lag int64, near []int) (stat.Line, bool) {
	x, y := k.scratch.x[:0], k.scratch.y[:0]
	defer func() { k.scratch.x, k.scratch.y = x, y }()
	runs := k.steady.runs
	for i := range windows {
		w := &windows[i]
		begin, end := w.Begin-lag, w.End-lag
		for len(runs) > 0 && runs[0].end <= begin { // windows are in order
			runs = runs[1:]
		}
		if w.Untrusted || w.SM != w.SM || len(runs) == 0 || runs[0].begin > begin || runs[0].end < end {
			continue
		}
		if near != nil {
			waits.cursor = near[i]
		}
		before := waits.upTo(begin)
		if near != nil {
			near[i] = waits.cursor
		}
		x = append(x, float64(waits.upTo(end)-before)/float64(end-begin))
		y = append(y, float64(w.SM))
	}
	if spread(x) < unmixSpread {
		return stat.Line{}, false
	}
	return stat.Fit(x, y)
}

func spread(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	n := float64(len(x))
	return math.Sqrt(math.Max(0, squares/n-sum/n*sum/n))
}

// cumulative is waiting time up to any moment.
type cumulative struct {
	begins []int64
	before []int64 // Σ of the waits in front of each, and of all
	cursor int     // waits that had begun when it was asked last
}

// waiting returns when the training thread waited: while the device had nothing to run where its clock tells, else at all.
func (k *rank) waiting() *cumulative {
	if k.waits != nil {
		return k.waits
	}
	c := &k.scratch.waits
	c.cursor, c.begins, c.before = 0, slices.Grow(c.begins[:0], len(k.Fetches)), slices.Grow(c.before[:0], len(k.Fetches)+1)
	k.waits = c
	seen := k.steady.seen()
	sum, last := int64(0), int64(0)
	for i := range k.Fetches {
		f := &k.Fetches[i]
		if !k.training(f) {
			continue
		}
		begin := f.Enter
		if seen && f.Idle != load.Unknown {
			begin = f.Exit - f.Idle
		}
		begin = max(begin, last)
		if f.Exit <= begin {
			continue
		}
		c.begins, c.before = append(c.begins, begin), append(c.before, sum)
		sum += f.Exit - begin
		last = f.Exit
	}
	c.before = append(c.before, sum)
	return c
}

// upTo returns the waiting before t.
func (c *cumulative) upTo(t int64) int64 {
	c.seek(t)
	i := c.cursor
	if i == 0 {
		return 0
	}
	return min(c.before[i], c.before[i-1]+t-c.begins[i-1])
}

// seek puts the cursor behind the waits that began by t. It searches from where it stands, either way and in steps that double, for
// whoever asks has asked for a time close by.
func (c *cumulative) seek(t int64) {
	low, high := c.cursor, c.cursor
	for step := 1; high < len(c.begins) && c.begins[high] <= t; step *= 2 {
		low, high = high+1, min(high+step, len(c.begins))
	}
	for step := 1; low > 0 && c.begins[low-1] > t; step *= 2 {
		low, high = max(low-step, 0), low-1
	}
	n, _ := slices.BinarySearch(c.begins[low:high], t+1)
	c.cursor = low + n
}

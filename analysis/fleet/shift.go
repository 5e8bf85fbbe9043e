package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// What is no difference. These are sums over everything that ran, so no interval is in them; but which jobs ran for how long differs
// from week to week, and counters are read at scrapes.
const (
	TrifleShare = 0.01 // of a share, absolute
	TrifleHours = 0.05 // of hours, relative
	trifleOf    = 0.01 // and of the hours that were allocated
)

// enough is the share of both windows of which there has to be data.
const enough = 0.9

// The shifts.
const (
	ShiftLost = "lost_gpu_hours"
	ShiftWait = "data_wait_share"
	ShiftSM   = "sm_active_ratio"
)

// New is why a job has nothing before to be compared with.
const New = "it was not there in the window before"

// bounds are the two windows.
type bounds struct{ now, before Stretch }

// shifts sets what was before beside what is now. there says whether there was anything before.
func (w bounds) shifts(before, now Use, there bool) []Shift {
	why := ""
	switch seen := w.before.Seen.Or(0); {
	case seen <= 0:
		why = "the server has no data of the window before"
	case seen < enough:
		why = "the server has data of only " + seenWords(seen) + " of the window before"
	case w.now.Seen.Or(0) < enough:
		why = "the server has data of only " + seenWords(w.now.Seen.Or(0)) + " of the window"
	case !there:
		why = New
	}
	lost := why
	if lost == "" && !alike(before, now) {
		lost = "what is known of it is not the same part in both windows"
	}
	least := trifleOf * max(before.Allocated.Or(0), now.Allocated.Or(0))
	return []Shift{
		shift(ShiftLost, before.Lost.Hours, now.Lost.Hours, lost, func(b, n float64) float64 { return max(TrifleHours*max(b, n), least) }, -1),
		shift(ShiftWait, before.Wait, now.Wait, why, func(b, n float64) float64 { return TrifleShare }, -1),
		shift(ShiftSM, before.SMActive, now.SMActive, why, func(b, n float64) float64 { return TrifleShare }, 1),
	}
}

func seenWords(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

// alike reports whether two sums of what is lost are of the same parts: where hooks came to jobs that had none, more is known, and
// no more is lost.
func alike(before, now Use) bool {
	unasked := func(u Use) float64 { return u.Unasked.Or(0) / max(u.Allocated.Or(0), 1e-9) }
	return before.Idle.Hours.IsKnown() == now.Idle.Hours.IsKnown() && math.Abs(unasked(before)-unasked(now)) <= TrifleHours
}

// shift weighs one number; better is the sign of a difference that is.
func shift(id string, before, now analysis.Ratio, why string, trifle func(before, now float64) float64, better float64) Shift {
	s := Shift{ID: id, Before: before, Now: now, Outcome: Unknown}
	b, knownBefore := before.Get()
	n, knownNow := now.Get()
	switch {
	case why != "":
		s.Before = unit.None[float64](why)
	case !knownNow:
		why = now.Why()
	case !knownBefore:
		why = "before: " + before.Why()
	}
	if s.Why = why; why != "" {
		s.Difference = unit.None[float64](why)
		return s
	}
	d := n - b
	s.Difference = unit.Some(d)
	switch {
	case math.Abs(d) < trifle(b, n):
		s.Outcome = Same
	case d*better > 0:
		s.Outcome = Better
	default:
		s.Outcome = Worse
	}
	return s
}

// When a rank is called slow: it waits for data in so much more of its time than the median rank of its job, and twice as much. Ranks
// that trained for less are left out.
const (
	slowBy     = 0.1
	slowTimes  = 2
	slowSince  = 600.0 // s
	slowNamed  = 8
	ranksLeast = 3
)

// slow finds the ranks whose loaders keep the others waiting: those wait in the exchange of gradients, which counts as computing.
func (b *book) slow() (out []SlowRank) {
	shares := map[string]float64{}
	var all []float64
	for rank, s := range b.training {
		if rank != "" && s >= slowSince {
			shares[rank] = min(1, b.wait[rank]/s)
			all = append(all, shares[rank])
		}
	}
	if len(all) < ranksLeast {
		return nil
	}
	slices.Sort(all)
	median := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	for _, rank := range sortedNames(shares) {
		if s := shares[rank]; s >= median+slowBy && s >= slowTimes*median {
			out = append(out, SlowRank{rank, s, median})
		}
	}
	slices.SortStableFunc(out, func(a, b SlowRank) int { return cmp.Compare(b.Wait, a.Wait) })
	return out[:min(len(out), slowNamed)]
}

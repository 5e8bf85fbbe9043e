package compare

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

var none0 stat.Estimate

// ofEpochs are the fixes whose effect is in the epoch, not in the steady step.
var ofEpochs = []string{fixes.PersistentWorkers, fixes.CheaperStart, fixes.SmallerShuffleBuffer, fixes.FewerWorkers}

// checks sets each prediction whose fix was applied beside what the second run took.
func checks(b, a side, o Options, changed []Change) ([]Check, []string) {
	out, unclear := []Check{}, []string{}
	if identity(b) == identity(a) {
		return out, unclear
	}
	found, notClear := findApplied(b, a, o.Applied)
	unclear = append(unclear, notClear...)
	for _, x := range found {
		out = append(out, check(b, a, x).judge(foul(b, a, x, found, changed, len(notClear) > 0 && len(o.Applied) == 0)))
	}
	if c, ok := planned(b, a, found); ok {
		out = append(out, c)
	} else if c, ok := atLeast(b, a, found, o, changed); ok {
		out = append(out, c)
	}
	return out, unclear
}

// check is a prediction and its measurement, not yet judged.
func check(b, a side, x applied) Check {
	c := Check{Fixes: []string{x.fix.ID}, Title: x.fix.Title, Seen: x.seen, Metric: RowStep, Before: b.Step.MeanSeconds, Predicted: x.fix.Predicted.StepSeconds, Measured: a.Step.MeanSeconds}
	if slices.Contains(ofEpochs, x.fix.ID) {
		c.Metric, c.Before, c.Measured = RowEpoch, b.epoch(), a.epoch()
		c.Predicted = shorter(c.Before, x.fix.Predicted.StepSavedShare)
	}
	c.Key = c.key(b, a)
	return c
}

// shorter is a time less a share of it. Only the share's interval counts: the time itself was measured in the run that is predicted from.
func shorter(whole, saved analysis.Est) analysis.Est {
	w, ok := whole.Get()
	if !ok {
		return whole
	}
	s, ok := saved.Get()
	if !ok {
		return saved
	}
	return unit.Some(stat.Interval{Value: w.Value * (1 - s.Value), Low: w.Value * (1 - s.High), High: w.Value * (1 - s.Low)}.Estimate(s.N, s.Grade, s.Source))
}

func (c Check) key(b, a side) string {
	h := fnv.New64a()
	fmt.Fprintln(h, identity(b), identity(a), strings.Join(c.Fixes, "+"), c.Metric)
	return fmt.Sprintf("%016x", h.Sum64())
}

// judge compares what was predicted with what was measured, unless there is a reason not to.
func (c Check) judge(why string) Check {
	p, known := c.Predicted.Get()
	m, also := c.Measured.Get()
	c.Within, c.Error = unit.None[bool](why), unit.None[float64](why)
	switch {
	case !known:
		why = "nothing was predicted: " + c.Predicted.Why()
	case !also:
		why = "nothing was measured: " + c.Measured.Why()
	case !finite(p.Value, p.Low, p.High, m.Value) || !(p.Value > 0 && m.Value > 0):
		why = "the prediction or the measurement is not a time"
	case why != "":
	case !weighed(p):
		why = "the prediction has no interval"
		c.Error = unit.Some(m.Value/p.Value - 1)
	default:
		c.Error, c.Within, c.Counted = unit.Some(m.Value/p.Value-1), unit.Some(p.Low <= m.Value && m.Value <= p.High), true
	}
	c.Why = why
	if !c.Within.IsKnown() {
		c.Within = unit.None[bool](why)
	}
	if !c.Error.IsKnown() {
		c.Error = unit.None[float64](why)
	}
	return c
}

// foul is why a prediction is not judged although its fix was applied: something else was changed as well. "" where nothing was.
func foul(b, a side, x applied, found []applied, changed []Change, unclear bool) string {
	for _, need := range ofStep {
		if text := differs[need](b, a); text != "" {
			return text
		}
	}
	if text := otherDataset(b, a); text != "" && slices.Contains(ofEpochs, x.fix.ID) {
		return text
	}
	if text := otherTarget(a, x.fix); text != "" {
		return text
	}
	if len(found) > 1 {
		return "it was applied together with others, and what it did alone was not measured"
	}
	if unclear {
		return "something else may have been applied with it"
	}
	if also := alsoChanged(x.fix.ID, changed); also != "" {
		return also + " was changed with it"
	}
	return ""
}

// sets are the loader arguments that a fix changes.
var sets = map[string]string{
	fixes.MoreWorkers: "num_workers", fixes.FewerWorkers: "num_workers", fixes.PrefetchFactor: "prefetch_factor", fixes.OutOfOrder: "in_order",
	fixes.PersistentWorkers: "persistent_workers", fixes.PinMemory: "pin_memory",
}

// bearing are the changes that move a step by themselves.
var bearing = []string{"num_workers", "prefetch_factor", "in_order", "persistent_workers", "pin_memory", "batch_size", "multiprocessing_context", "usable_cores"}

// alsoChanged names what was changed besides what the fix changes.
func alsoChanged(id string, changed []Change) string {
	var also []string
	for _, c := range changed {
		own := c.What == sets[id] || c.What == "usable_cores" && (id == fixes.CPULimit || id == fixes.CPUAffinity)
		if !own && slices.Contains(bearing, c.What) {
			also = append(also, c.What)
		}
	}
	return strings.Join(also, " and ")
}

// otherTarget says that a fix was applied with another number than the one that was predicted for.
func otherTarget(a side, f analysis.Fix) string {
	argument := sets[f.ID]
	if argument != "num_workers" && argument != "prefetch_factor" {
		return ""
	}
	want, ok := target(f, argument)
	got, known := a.number(argument)
	if !ok || !known {
		return "for which " + argument + " it was predicted is not known"
	}
	if want != got {
		return fmt.Sprintf("it was predicted for %s=%d, and %d was used", argument, want, got)
	}
	return ""
}

// target is the number that a fix sets an argument to. Reports of early versions tell it only in the advice.
func target(f analysis.Fix, argument string) (int, bool) {
	n := f.Arguments.Workers
	if argument == "prefetch_factor" {
		n = f.Arguments.Prefetch
	}
	if v, ok := n.Get(); ok {
		return v, true
	}
	return targetIn(f.How, argument)
}

// targetIn reads an argument off the call that a fix says to write: DataLoader(..., num_workers=6). A prefetch_factor that is left out
// is PyTorch's own.
func targetIn(how, argument string) (int, bool) {
	m := regexp.MustCompile(`\b` + argument + `=(\d+)`).FindStringSubmatch(how)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// planned is what the plan said of fixes that were applied together: the step after the last of them.
func planned(b, a side, found []applied) (Check, bool) {
	n := len(found)
	if n < 2 || n > len(b.Plan) {
		return Check{}, false
	}
	var ids, titles []string
	for _, step := range b.Plan[:n] {
		i := slices.IndexFunc(found, func(x applied) bool { return x.fix.ID == step.ID })
		if i < 0 {
			return Check{}, false
		}
		ids, titles = append(ids, step.ID), append(titles, cmp.Or(step.Title, found[i].fix.Title))
	}
	c := Check{Fixes: ids, Title: strings.Join(titles, ", then "), Seen: "all of them were applied", Metric: RowStep, Before: b.Step.MeanSeconds,
		Predicted: plainStep(b.Plan[n-1].StepSeconds), Measured: a.Step.MeanSeconds}
	c.Key = c.key(b, a)
	return c.judge(unlike(b, a)), true
}

// atLeast sets fixes that were applied together beside the best of them alone: no fix of the catalogue undoes another, so a step should be
// no longer than that. It may be shorter, so this is no prediction of its own and counts for nothing.
func atLeast(b, a side, found []applied, o Options, changed []Change) (Check, bool) {
	var best *applied
	var ids []string
	for i, x := range found {
		p, ok := x.fix.Predicted.StepSeconds.Get()
		if slices.Contains(ofEpochs, x.fix.ID) || !ok || !finite(p.Value, p.Low, p.High) {
			continue
		}
		ids = append(ids, x.fix.ID)
		if best == nil || p.Value < best.fix.Predicted.StepSeconds.Or(none0).Value {
			best = &found[i]
		}
	}
	if len(ids) < 2 {
		return Check{}, false
	}
	c := check(b, a, *best)
	c.Fixes, c.Title = ids, "together, no longer than by the best of them alone ("+best.fix.Title+")"
	c.Seen = "all of them were applied"
	c.Key = c.key(b, a)
	c = c.judge(cmp.Or(unlike(b, a), othersChanged(slices.Concat(ids, o.Applied), changed)))
	c.Counted = false
	p, _ := c.Predicted.Get()
	if m, _ := c.Measured.Get(); c.Within.IsKnown() && m.Value < p.Low {
		c.Why = "together they won more than the best of them alone"
		c.Within = unit.None[bool](c.Why)
	}
	return c, true
}

// othersChanged names what was changed besides what fixes change.
func othersChanged(ids []string, changed []Change) string {
	for _, c := range changed {
		own := slices.ContainsFunc(ids, func(id string) bool { return alsoChanged(id, []Change{c}) == "" })
		if !own {
			return c.What + " was changed with them"
		}
	}
	return ""
}

func unlike(b, a side) string {
	for _, need := range ofStep {
		if text := differs[need](b, a); text != "" {
			return text
		}
	}
	return ""
}

func plainStep(seconds float64) analysis.Est {
	if !finite(seconds) || seconds <= 0 {
		return unit.None[stat.Estimate]("the plan gives no step")
	}
	return unit.Some(stat.Exact(seconds).Estimate(0, stat.GradeC, "plan"))
}

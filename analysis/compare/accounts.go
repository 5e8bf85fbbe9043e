package compare

import (
	"maps"
	"slices"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// accounts are shares of the allocated time. They come from one booking of each run and have no interval.
func accounts(b, a side, refusal string) []Row {
	why := refusal
	if why == "" {
		why = otherGPU(b, a)
	}
	out := []Row{}
	for _, name := range accountNames(b, a) {
		x, y := b.account(name), a.account(name)
		if x.Or(stat.Estimate{}).Value == 0 && y.Or(stat.Estimate{}).Value == 0 && x.IsKnown() && y.IsKnown() {
			continue
		}
		out = append(out, weigh(name, unitRatio, neither, x, y, why))
	}
	return out
}

func accountNames(b, a side) []string {
	names := map[string]bool{}
	for _, s := range []side{b, a} {
		for _, g := range s.Result.GPUs {
			for name := range g.AccountsNS {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// account is the share of the allocated time in one account.
func (s side) account(name string) analysis.Est {
	var sum, all int64
	seen := false
	for _, g := range s.Result.GPUs {
		all += g.AllocatedNS
		ns, ok := g.AccountsNS[name]
		sum, seen = sum+ns, seen || ok
	}
	switch {
	case all <= 0:
		return unit.None[stat.Estimate]("no GPU was sampled")
	case !seen:
		return unit.None[stat.Estimate]("it is not told apart from other accounts")
	case name == ledger.ExposedWait.String() && !s.Step.ExposedWaitShare.IsKnown():
		return unit.None[stat.Estimate]("whether the GPU stood idle during the wait is not known; the wait is in another account")
	}
	return plainShare(float64(sum) / float64(all))
}

func plainShare(x float64) analysis.Est {
	return unit.Some(stat.Exact(x).Estimate(1, stat.GradeB, "accounts"))
}

// anatomy are the parts of a mean step, in seconds.
func anatomy(b, a side, refusal string) []Row {
	var names []string
	for _, s := range []side{b, a} {
		for _, p := range s.Step.Anatomy {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	why := measure{needs: ofStep}.why(b, a, refusal)
	out := []Row{}
	for _, name := range names {
		out = append(out, weigh(name, unitSeconds, neither, b.part(name), a.part(name), why))
	}
	return out
}

func (s side) part(name string) analysis.Est {
	for _, p := range s.Step.Anatomy {
		if p.Name == name && finite(p.Seconds) {
			return unit.Some(stat.Exact(p.Seconds).Estimate(s.Step.N, stat.GradeB, "parts of a step"))
		}
	}
	switch {
	case len(s.Step.Anatomy) == 0:
		return unit.None[stat.Estimate]("no step was measured")
	case name == "unexplained", name == ledger.ExposedWait.String() && s.Step.ExposedWaitShare.IsKnown(): // the parts add up to the step: it is none
		return unit.Some(stat.Exact(0).Estimate(s.Step.N, stat.GradeB, "parts of a step"))
	}
	return unit.None[stat.Estimate]("it is not told apart from other parts")
}

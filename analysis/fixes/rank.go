package fixes

import (
	"cmp"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/unit"
)

// Ranking is what to change, in order, and what not to bother with.
type Ranking struct {
	Fixes    []Fix
	NoHelp   []NoHelp
	Unpriced []Unpriced
	Plan     []PlanStep
	MoreGPUs Scaling
	// Reason says why there is no fix: an untrusted model, or a job in which none saves enough. "" otherwise.
	Reason string
}

// Worth is the share of the training time below which a fix is not proposed (F73: "no data fix helps" is an answer).
const Worth = 0.03

// Rank prices the catalogue against the model and orders it.
func Rank(m loader.Model) Ranking {
	j := newJob(m)
	rules := catalogue
	switch {
	case m.Trusted:
	case !m.Known.Step && j.epochsOnly():
		rules = ofEpochStart
	default:
		rules = nil
	}
	out := Ranking{Fixes: []Fix{}, NoHelp: []NoHelp{}, Unpriced: []Unpriced{}, Plan: []PlanStep{}, MoreGPUs: j.scaling()}
	var worth []priced
	for _, r := range rules {
		p := r.propose(j, j.now)
		switch {
		case p.unpriced != "":
			out.Unpriced = append(out.Unpriced, Unpriced{ID: r.id, Title: p.title, How: p.how, Recipe: Recipe(r.id), Reason: p.unpriced})
		case p.change == nil:
			out.NoHelp = j.noHelp(out.NoHelp, r, p, 0)
		default:
			x := j.price(r, p)
			if x.saved.Value < Worth {
				out.NoHelp = j.noHelp(out.NoHelp, r, p, x.saved.Value)
				continue
			}
			worth = append(worth, x)
		}
	}
	worth = order(worth)
	for i, x := range worth {
		f := j.fix(x)
		f.Position = i + 1
		out.Fixes = append(out.Fixes, f)
	}
	if rules == nil {
		out.Reason = "nothing is ranked: " + m.Reason
		return out
	}
	if len(worth) == 0 {
		out.Reason = "no data fix helps more than 3 %"
		if len(out.Unpriced) > 0 {
			out.Reason = "no fix that can be priced saves 3 % of the training time or more"
		}
		return out
	}
	out.Plan = j.plan(rules, worth[0])
	return out
}

// noHelp notes common advice that saves too little, with what makes it so.
func (j *job) noHelp(list []NoHelp, r rule, p proposal, saved float64) []NoHelp {
	if !r.common || p.title == "" {
		return list
	}
	reason := cmp.Or(p.zero, p.reason)
	if reason == "" {
		reason = j.binds(apply(j.now, p.change))
	}
	return append(list, NoHelp{ID: r.id, Title: p.title, Reason: reason, SavedShare: unit.Float(saved, "not a number")})
}

package fixes

// planSteps bounds the plan: nobody carries out a fifth step without measuring again.
const planSteps = 4

// plan applies the best fix, prices the rest anew in what is left, and so on until the next one is not worth it. What two fixes
// have in common is thereby counted once.
func (j *job) plan(rules []rule, first priced) []PlanStep {
	var out []PlanStep
	used := map[string]bool{}
	for x, ok := first, true; ok && len(out) < planSteps; x, ok = j.nextStep(rules, x.after, used) {
		used[x.rule.id] = true
		out = append(out, PlanStep{ID: x.rule.id, Title: x.p.title, StepSeconds: j.stepIn(x.after), BottleneckAfter: string(x.after.law.Binding())})
	}
	return out
}

// nextStep is the best fix from a configuration.
func (j *job) nextStep(rules []rule, at state, used map[string]bool) (priced, bool) {
	before := j.cost(at)
	var worth []priced
	for _, r := range rules {
		p := r.propose(j, at)
		if used[r.id] || p.change == nil || before <= 0 {
			continue
		}
		x := priced{rule: r, p: p, after: apply(at, p.change)}
		x.saved.Value = (1 - p.idle) * (before - j.cost(x.after)) / j.wall
		x.saved.Low = x.saved.Value
		if p.worst != nil {
			x.saved.Low = min(x.saved.Low, (1-p.idle)*(before-j.cost(apply(at, p.worst)))/j.wall)
		}
		if x.saved.Value >= Worth {
			worth = append(worth, x)
		}
	}
	if len(worth) == 0 {
		return priced{}, false
	}
	return worth[leader(worth)], true
}

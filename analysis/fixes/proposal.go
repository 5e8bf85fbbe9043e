package fixes

// rule is one entry of the catalogue.
type rule struct {
	id      string
	common  bool // advice that is often given: where it does nothing, the report says so
	propose func(*job, state) proposal
}

// proposal is what a rule makes of a configuration: a change to price, a reason why there is nothing to gain, or a
// reason why it cannot be priced. The zero proposal means that the fix does not apply, and nothing is said.
type proposal struct {
	title   string
	effort  effort
	how     string
	needs   string
	sets    LoaderArguments
	assumes []string

	change      func(*state) // what is expected
	best, worst func(*state) // the same with the assumptions at their ends; nil = as change

	noRoom bool    // its queues do not fit into /dev/shm
	unseen bool    // it changes reading, and no file, request or byte was seen
	idle   float64 // share of the run in which it does not work yet, 0–1

	zero     string // why there is nothing to gain
	reason   string // why a change that was priced gains too little; "" = what binds says it
	unpriced string // what is missing to price it
}

// apply returns the configuration after a change.
func apply(s state, change func(*state)) state {
	change(&s)
	return s
}

// shorten takes seconds off a step's own work. At W = 0 the training thread's time outside next() shrinks with it.
func (s *state) shorten(seconds float64) {
	s.law.Compute = max(0, s.law.Compute-seconds)
	s.law.Outside = max(0, s.law.Outside-seconds)
}

// relieve takes CPU seconds off a build, helper threads in proportion.
func (s *state) relieve(seconds float64) {
	if s.law.CPU <= 0 {
		return
	}
	rest := max(0, s.law.CPU-seconds)
	s.law.Work *= rest / s.law.CPU
	s.law.CPU = rest
}

// wait scales the off-CPU part of a build, and what of it is exclusive.
func (s *state) wait(factor float64) {
	s.law.Off *= factor
	s.law.Shared *= factor
}

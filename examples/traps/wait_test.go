package traps

import "testing"

// A share of 9 % may be taken for 6 or 12 %: the script's clock sees the observer inside next() too. The traps are far from that.
const shares = 0.03

// The step is what lies between the ends of two steps, not what was traced of it.
func TestWorkOutsideTheTracedPartIsPartOfTheStep(t *testing.T) {
	for _, optimizer := range []string{"yes", "no"} { // without one, a step is a fetch
		r := shared(t, nil, "outside.py", "--optimizer", optimizer)
		near(t, "the share of data wait, optimizer "+optimizer, r.report.Step.Share, r.truth.Share, shares)
		near(t, "the step, optimizer "+optimizer, r.report.Step.Mean, r.truth.Step, 0.05*r.truth.Step)
		if r.report.Job.Steps != r.truth.Steps {
			t.Errorf("%d steps, the script made %d", r.report.Job.Steps, r.truth.Steps)
		}
	}
}

// What a validation loop waits for is the validation loader's, also where the loop forgot no_grad.
func TestValidationFetchesAreNoWaitOfTheTraining(t *testing.T) {
	for _, grad := range []string{"off", "on"} {
		r := recorded(t, nil, "validation.py", "--grad", grad)
		near(t, "the share of data wait, autograd "+grad, r.report.Step.Share, r.truth.Share, shares)
		var waited *estimate
		for _, l := range r.report.Loaders {
			if l.Role != "training" {
				waited = &estimate{Value: l.WaitSeconds}
			}
		}
		near(t, "the wait of the validation loader, autograd "+grad, waited, r.truth.Validated, 0.1*r.truth.Validated)
	}
}

// Intervals come from the monotonic clock. A wall clock that jumps makes the clocks disagree, and that is said.
func TestAWallClockThatJumpsChangesNoInterval(t *testing.T) {
	r := recorded(t, nil, "wallclock.py")
	near(t, "the share of data wait", r.report.Step.Share, r.truth.Share, shares)
	near(t, "the step", r.report.Step.Mean, r.truth.Step, 0.05*r.truth.Step)
	if c := r.report.Quality.Clock.Residual; c == nil || *c < 60 {
		t.Errorf("the wall clock was off by hours, yet clocks agree within %v s", c)
	}
}

// A loop that skips bad batches sees what it sees alone, and iterators are what PyTorch made.
func TestLoadersStayAsLazyAsTheyAre(t *testing.T) {
	alone, _ := bare(t, "lazy.py")
	r := recorded(t, nil, "lazy.py")
	if r.stdout != alone {
		t.Errorf("observed, the loop saw\n%sand alone\n%s", r.stdout, alone)
	}
	if r.truth.Fetches != 2*19 {
		t.Errorf("%d batches of 2 × 19", r.truth.Fetches)
	}
}

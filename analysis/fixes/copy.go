package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// pinMemory copies from page-locked memory. Pageable copies are made twice; half of the time is a usual gain, none is not rare, and
// where a batch is many tensors pinning itself costs (F51: 1.33–1.42 times slower; F54).
func pinMemory(j *job, s state) proposal {
	p := proposal{title: "pin_memory", effort: oneArgument}
	if on, ok := j.p.Args.PinMemory.Get(); ok && on {
		return proposal{}
	}
	p.how = withArguments(j, func(a *arguments) { a.pinned = true })
	if j.hidden(s) {
		p.zero = j.hides()
		return p
	}
	if !j.p.Step.Copy.IsKnown() {
		p.unpriced = "how much of a step is an exposed copy was not measured (diagnose: leg device-cached)"
		return p
	}
	if j.p.Step.Copy.Or(zero).Low <= 0 {
		p.zero = fmt.Sprintf("the exposed copy (%s of a step) cannot be told from none: steps vary by more than that", phrase.Duration(s.law.Copy))
		return p
	}
	p.needs = "page-locked host memory for the queued batches"
	p.assumes = []string{"the copy takes half as long from pinned memory (interval: no gain to a quarter of the time)"}
	if s.law.Copy < Worth*j.step {
		p.zero = j.smallCopy(s)
	}
	p.change, p.best, p.worst = lessCopy(0.5), lessCopy(0.75), lessCopy(0)
	return p
}

// overlapCopy copies the next batch while the device computes (F55, F56; scenario S23).
func overlapCopy(j *job, s state) proposal {
	if s.law.Copy <= 0 || j.p.Step.Copy.Or(zero).Low <= 0 {
		return proposal{}
	}
	return proposal{
		title: "copy the next batch while the device computes", effort: fewLines,
		how: fmt.Sprintf("%s and batch.to(device, non_blocking=True), one batch ahead on a side stream",
			withArguments(j, func(a *arguments) { a.pinned = true })),
		needs:   "GPU memory for one more batch",
		assumes: []string{"the copy hides behind the step's own work (interval: half of it does)"},
		change:  lessCopy(1), worst: lessCopy(0.5),
	}
}

// lessCopy takes a part of the exposed copy away.
func lessCopy(part float64) func(*state) {
	return func(s *state) {
		s.shorten(part * s.law.Copy)
		s.law.Copy *= 1 - part
	}
}

func (j *job) smallCopy(s state) string {
	return fmt.Sprintf("the exposed copy is %s of a step of %s", phrase.Duration(s.law.Copy), phrase.Duration(j.step))
}

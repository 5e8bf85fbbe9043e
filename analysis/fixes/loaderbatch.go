package fixes

import (
	"fmt"
	"math"
)

// smallerLoaderBatch has the loader build parts of a batch, which several workers build side by side, and puts them together for the step. It makes
// the first batch of an epoch come sooner, for that one is built by one worker while the others build batches that nobody asks for
// yet (one batch of 120 s with four workers, F03); steady steps only pay for more hand-offs.
func smallerLoaderBatch(j *job, s state) proposal {
	size, ok := j.p.Args.BatchSize.Get()
	if !ok || s.law.Workers < 2 || j.p.Args.Watched || j.batches == 0 || j.p.Epoch.Epochs < 2 || !j.model.Known.Build {
		return proposal{}
	}
	parts := divisor(size, s.law.Workers)
	if parts < 2 {
		return proposal{}
	}
	split := func(fixed float64) func(*state) {
		return func(s *state) { s.split(float64(parts), fixed) }
	}
	return proposal{
		title: fmt.Sprintf("build batches of %d and put %d together for each step", size/parts, parts), effort: fewLines,
		how:     fmt.Sprintf("DataLoader(..., batch_size=%d), and torch.cat of %d batches before the step (or gradients accumulated over them)", size/parts, parts),
		needs:   "a sampler that does not depend on the batch size",
		assumes: []string{"a part takes as much less to build as it has fewer samples (interval: a quarter of a build is the same for any size)"},
		change:  split(0), worst: split(0.25),
	}
}

// split makes every batch into parts, of whose build some share does not get shorter.
func (s *state) split(parts, fixed float64) {
	whole := s.law
	of := func(v float64) float64 { return v * (fixed + (1-fixed)/parts) }
	l := &s.law
	l.Off, l.Shared, l.CPU, l.Work, l.Queue = of(l.Off), of(l.Shared), of(l.CPU), of(l.Work), of(l.Queue)
	s.collate = of(s.collate)
	l.Fetches *= parts
	l.Ahead *= int(parts)
	// The first step needs as many batches as there are parts: rounds of the workers, or what the cores take for all of them.
	rounds := math.Ceil(parts/float64(whole.Workers)) * l.Build()
	cores := parts * l.Work / math.Min(l.WorkerCores, l.JobCores)
	s.extra += math.Max(0, max(rounds, cores, parts*l.Shared)-l.Build())
}

// divisor is the largest number up to most that divides n.
func divisor(n, most int) int {
	for d := min(n, most); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/stage"
)

// leastJoin is the part of a batch's time from which putting features together is worth a word.
const leastJoin = 0.05

// precomputeFeatures joins features once instead of for every sample: 160 s of a run were spent in the index of a data frame, and arrays made the
// whole of it seven times as fast (F42). It is the part of preprocess-once that leaves decoding where it is. Only looks at the builders'
// stacks can find it.
func precomputeFeatures(j *job, _ state) proposal {
	joins, ok := j.joins()
	seen, okSeen := j.inside(stage.Join)
	if !ok || !okSeen || joins.Share.Value < leastJoin {
		return proposal{}
	}
	waits := j.waitsIn(joins)
	less := func(part float64) func(*state) {
		return func(s *state) {
			s.relieve(part * s.gather())
			s.wait(1 - waits)
		}
	}
	p := proposal{
		title: "join features once, before training", effort: dataJob,
		how:     "store what a sample looks up and merges as finished rows (one array or Arrow table in the order of the samples), and index that" + seen.here(),
		needs:   "disk for the joined features, a job that joins them anew when a source changes",
		assumes: []string{seen.assumption("joining takes"), "what is joined is the same in every epoch, and reading a finished row takes next to nothing"},
		change:  less(seen.part.Value), best: less(seen.part.High), worst: less(seen.part.Low),
	}
	if waits > 0.01 {
		p.assumes = append(p.assumes, fmt.Sprintf("%s of what a build waits for is waited for in joins", phrase.Percent(waits)))
	}
	return p
}

// joins is the part of a batch's time in which features are put together.
func (j *job) joins() (stage.Part, bool) {
	if j.p.Inside == nil {
		return stage.Part{}, false
	}
	for _, p := range j.p.Inside.Parts {
		if p.Class == stage.Join {
			return p, true
		}
	}
	return stage.Part{}, false
}

// waitsIn is the share that a part has in all that a build waits for.
func (j *job) waitsIn(part stage.Part) float64 {
	whole := 0.0
	for _, p := range j.p.Inside.Parts {
		whole += p.Off.Value
	}
	if whole <= 0 {
		return 0
	}
	return math.Min(1, part.Off.Value/whole)
}

package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stage"
)

// vectorizeCollate makes collate cheaper: 40 ms of Python per batch against 4 ms with arrays (scenario S10; F40, F42).
func vectorizeCollate(j *job, s state) proposal {
	if !j.model.Known.Build || s.law.Build() <= 0 || s.collate < 0.1*s.law.Build() {
		return proposal{}
	}
	by := func(factor float64) func(*state) {
		return func(s *state) {
			s.relieve(s.collate * (1 - 1/factor))
			s.collate /= factor
		}
	}
	return proposal{
		title: "vectorise collate", effort: fewLines,
		how:     "in collate_fn stack whole arrays (torch.stack, np.stack into one buffer, pad_sequence) instead of looping in Python; tokenise before training" + j.named(stage.Collate),
		assumes: []string{fmt.Sprintf("collate takes %s of CPU per batch and can be 5 times as fast (interval: 2 to 10)", phrase.Duration(s.collate))},
		change:  by(5), best: by(10), worst: by(2),
	}
}

// manyTensors is the number of tensors per batch from which handing them over one by one matters.
const manyTensors = 16

// packBatch hands over few tensors: the same bytes as 4 objects instead of 114 went from 203 to 427 images a second (F51).
func packBatch(j *job, s state) proposal {
	n := j.p.Batch.Tensors.Or(0)
	floor := j.p.Step.HandoffFloor.Or(loader.TypicalHandoff)
	if n < manyTensors || s.law.Handoff <= floor {
		return proposal{}
	}
	pack := func(part float64) func(*state) {
		return func(s *state) { s.law.Handoff -= part * math.Max(0, s.law.Handoff-floor) }
	}
	return proposal{
		title: fmt.Sprintf("hand a batch over as a few tensors instead of %.0f", n), effort: fewLines,
		how:     "concatenate the batch's tensors of one type into one in collate_fn, and take views of it in the training process",
		assumes: []string{"the hand-off beyond its floor is in proportion to the number of tensors"},
		change:  pack(1 - 4/n), worst: pack(0.3),
	}
}

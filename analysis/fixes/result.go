package fixes

import (
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/unit"
)

// Fix is one change worth making. Its JSON form is part of the report's contract.
type Fix struct {
	ID        string          `json:"id"`
	Position  int             `json:"position"` // from 1
	Title     string          `json:"title"`
	Predicted Prediction      `json:"predicted"`
	Measured  loader.Est      `json:"measured"`         // saved share, where the run tried it
	Arguments LoaderArguments `json:"loader_arguments"` // it sets; the others stay
	Effort    string          `json:"effort"`
	How       string          `json:"how"`
	Recipe    string          `json:"recipe"` // the script of datawait's repository that shows how, as a path in it; "" where there is none
	Needs     string          `json:"needs"`
	Assumes   []string        `json:"assumes"`
	NoRoom    bool            `json:"-"` // its queues do not fit into /dev/shm
}

// LoaderArguments are those of PyTorch's DataLoader that a fix sets.
type LoaderArguments struct {
	Workers  unit.Maybe[int] `json:"num_workers"`
	Prefetch unit.Maybe[int] `json:"prefetch_factor"`
}

// unchanged is an argument that a fix leaves as it is.
var unchanged = unit.None[int]("this fix does not change it")

func (a LoaderArguments) orUnchanged() LoaderArguments {
	for _, v := range []*unit.Maybe[int]{&a.Workers, &a.Prefetch} {
		if !v.IsKnown() {
			*v = unchanged
		}
	}
	return a
}

// Prediction is what a fix is expected to do.
type Prediction struct {
	// StepSeconds is the steady step afterwards. A fix of the epoch start leaves it as it is: its saving is in EpochSeconds.
	StepSeconds loader.Est `json:"step_seconds"`
	// StepSavedShare is the part of the training time saved, epoch starts spread over their steps. It is the measure that
	// fixes are ordered by, so a fix of the step and one of the epoch start compare.
	StepSavedShare   loader.Est `json:"step_time_saved_share"`
	WaitRemovedShare loader.Num `json:"wait_removed_share"` // of the data wait, epoch starts included
	EpochSeconds     loader.Num `json:"seconds_per_epoch_saved"`
	GPUHoursPerDay   loader.Num `json:"gpu_hours_saved_per_day"` // 24 h of this job
}

// NoHelp is a common advice that does nothing here, and the term that makes it nothing.
type NoHelp struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Reason     string     `json:"reason"`
	SavedShare loader.Num `json:"saved_share"`
}

// Unpriced is a change that may help but whose effect these measurements cannot predict.
type Unpriced struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	How    string `json:"how"`
	Recipe string `json:"recipe"` // the script of datawait's repository that shows how, as a path in it; "" where there is none
	Reason string `json:"reason"` // what is missing to price it
}

// PlanStep is one step of the greedy plan: what to do next and what binds afterwards.
type PlanStep struct {
	ID              string  `json:"id"`
	Title           string  `json:"title"`
	StepSeconds     float64 `json:"step_seconds_after"`
	BottleneckAfter string  `json:"bottleneck_after"`
}

package recording

import "fmt"

// Trial is a loader that is tried in place of the training's: the same data with other arguments (SPEC §5).
type Trial struct {
	Workers  int
	Prefetch int  // batches ahead per worker
	Memoised bool // every worker builds one batch, and gives that from memory from then on
}

const (
	mostTrialWorkers  = 1<<16 - 1
	mostTrialPrefetch = 1<<8 - 1
	trialMemoised     = 1 << 24
)

func (t Trial) word() uint32 {
	w := uint32(min(max(t.Workers, 0), mostTrialWorkers)) | uint32(min(max(t.Prefetch, 0), mostTrialPrefetch))<<16
	if t.Memoised {
		w |= trialMemoised
	}
	return w
}

func trialOf(w uint32) Trial {
	return Trial{Workers: int(w & mostTrialWorkers), Prefetch: int(w >> 16 & mostTrialPrefetch), Memoised: w&trialMemoised != 0}
}

// String says what is tried.
func (t Trial) String() string {
	s := fmt.Sprintf("num_workers=%d", t.Workers)
	if t.Workers > 0 {
		s += fmt.Sprintf(", prefetch_factor=%d", t.Prefetch)
	}
	if t.Memoised {
		s += ", samples kept in memory"
	}
	return s
}

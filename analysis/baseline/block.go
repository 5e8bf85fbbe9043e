// Package baseline judges the cached-data test: the same training steps on batches already in memory, compared with live ones in
// interleaved blocks.
//
// It compares neighbours. A GPU that warms up, a neighbour that starts a build: all of it moves the live and the cached block of
// a pair alike, so the interval comes from the spread of the pairs and not from the spread of the blocks.
//
// It decides whether the input pipeline is the cause, and refuses to where blocks were not timed on the device: a host clock
// read a ceiling of 31 where 3.1 was true, with launches running ahead.
//
// Read [Block] and [Judge] first.
package baseline

import "github.com/datawait/datawait/probe/recording"

// Block is one block of the test, all ranks together. Times are seconds per step.
type Block struct {
	Number      int
	Leg         recording.Leg
	Steps       int     // counted, of one rank
	Seconds     float64 // mean over ranks
	Wait        float64 // inside next(), of the rank that waits longest
	Exposed     float64 // of a wait: the device had nothing to run, on the rank where that is longest; NaN where no device clock says
	DeviceTimed bool    // on every rank the device was synchronised at both ends
	Void        uint32  // why it may not be used on some rank (recording.Void…); 0 = it may
	SM          float64 // Σ SM activity × window over windows wholly inside the block
	SMSeconds   float64 // Σ window
	Windows     int
}

// voidReasons says why a block does not count, in words.
var voidReasons = map[uint32]string{
	recording.VoidEpochEnded:  "an epoch ended inside the block",
	recording.VoidTooFewSteps: "too few steps",
	recording.VoidTooLarge:    "the batches are larger than the memory set aside for them",
	recording.VoidException:   "the leg is not available: it raised an exception",
	recording.VoidEndedEarly:  "the run ended inside the block",
	recording.VoidNeverIdle:   "the workers never became idle",
	recording.VoidNoBatch:     "there was no batch to replay",
	recording.VoidOtherLoop:   "another loop ran inside the block",
	recording.VoidSaved:       "a checkpoint was saved inside the block",
}

// Reason says why a block does not count.
func Reason(void uint32) string {
	if why, ok := voidReasons[void]; ok {
		return why
	}
	return "it does not count"
}

package analysis

import (
	"math/bits"

	"github.com/datawait/datawait/probe/unit"
)

// under is how long a batch that was sent may be under way at least (1.1–1.5 ms on two quiet cores with PyTorch 1.13), ns.
const under = 2_000_000

// oftenLate is the part of batches that must be waited for, for what those take to be what any takes.
const oftenLate = 0.1

// fewReady is how many batches that were there say what one takes: of a handful, one that the scheduler held up for 80 ms makes most of the mean.
const fewReady = 20

// arrivals is how long next() takes from when its batch was sent, by how long before next() that was.
//
// A worker's feeder thread pickles and sends a batch beside the next build, so a batch that was sent is not there yet. Where builds keep
// the cores full, or hold Python's lock for most of their time (a feeder waits 5 ms for it every time, sys.getswitchinterval), it is
// under way for longer than it takes to hand over: tokenising in collate showed 8 ms where one that is there takes 1.5. So a batch counts as
// there only if it was sent half as long again ago as those take that are waited for.
type arrivals struct {
	late  mean     // seconds, of batches that were waited for, from when they were sent
	early [32]mean // … of those sent before, from when next() was entered; by the power of two of `under` that they were early by
}

func (a *arrivals) add(early, ns int64) {
	switch {
	case early < 0:
		a.late.add(float64(ns)/1e9, 1)
	case early > under:
		a.early[min(bits.Len64(uint64(early/under))-1, len(a.early)-1)].add(float64(ns)/1e9, 1)
	}
}

// ready is what next() takes on a batch that is there.
func (a *arrivals) ready() Ratio {
	n := 0.0
	for i := range a.early {
		n += a.early[i].weight
	}
	way := 0.0 // ns that a batch is under way
	if a.late.weight > 0 && a.late.weight >= oftenLate*(a.late.weight+n) {
		way = 1.5e9 * a.late.sum / a.late.weight
	}
	var there mean
	for i := range a.early {
		if float64(int64(under)<<i) >= way {
			there.add(a.early[i].sum, a.early[i].weight)
		}
	}
	if there.weight < fewReady {
		return unit.None[float64]("fewer than 20 batches were there for certain before they were asked for")
	}
	return unit.Some(there.sum / there.weight)
}

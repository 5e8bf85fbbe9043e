package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// removeSync lets the training thread prepare the next step while the device computes this one (F56, F57): a call that waits for the device
// every step (.item(), .cpu(), print of a loss) puts the two one after the other. It is priced only where the thread sleeps
// while the device works: one that spins, or that is busy itself, looks alike from outside.
func removeSync(j *job, s state) proposal {
	l := s.law
	device := l.Compute - l.Host
	if _, ok := j.model.InTurn(l); !ok || j.waitsForData(s) {
		return proposal{}
	}
	return proposal{
		title: "no call that waits for the device every step", effort: fewLines,
		how: "sum the loss up on the device and read it every 50 steps; no .item(), .cpu(), print or if on a tensor in the loop, copies with non_blocking=True",
		assumes: []string{fmt.Sprintf("the training thread waits for the device every step and need not: its own %s then pass beside the device's %s (interval: none of it)",
			phrase.Duration(l.Host), phrase.Duration(device))},
		change: func(s *state) {
			s.law.Ahead, s.law.Outside = int(math.Ceil(s.law.Fetches)), s.law.Host
			s.law.Compute = math.Max(s.law.Host, s.law.Compute-s.law.Host)
			s.law.Host = 0 // it passes beside the device now: to move it elsewhere as well would count it twice
		},
		worst: func(*state) {},
	}
}

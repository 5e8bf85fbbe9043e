package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// emptied is the part of the data wait in which the device must have had nothing to run for its clock to bear out that the training thread
// waits for it every step. One that launches ahead comes to next() with the device still at work.
const emptied = 0.9

// inTurn: a call that waits for the device every step (.item(), .cpu(), print of a loss) has the training thread and the device take turns (F56, F57).
func inTurn(s *subject) opinion {
	if !s.judge {
		return opinion{}
	}
	seconds, ok := s.m.InTurn(s.l)
	share := s.share(seconds)
	empty, clocked := s.m.Emptied().Get()
	switch {
	case !ok || share < Small: // every script's own lines cost a millisecond or so between two launches
		return opinion{}
	case s.hidesCompute():
		return drop("that the training thread waits for the device hides behind the data wait")
	case clocked && empty < emptied:
		return drop(fmt.Sprintf("the device still works for %s of the time for which the next batch is waited for: launches run ahead", phrase.Percent(1-empty)))
	}
	base := 0.8
	if !clocked {
		base = 0.6 // the thread may sleep for something else while the device works
	}
	return find(Verdict{
		Title: fmt.Sprintf("the training thread and the GPU take turns: it works for %s with the GPU idle and sleeps while the GPU works for %s; side by side a step would be %s shorter",
			phrase.Duration(s.l.Host), phrase.Duration(s.l.Compute-s.l.Host), phrase.Percent(share)),
		Confidence: s.sure(base),
		Evidence: s.device(s.wait().num("main_cpu_seconds", s.p.Step.MainCPU, "seconds", bySteps)).value("host_seconds", s.l.Host, "seconds", byLaw).
			num("wait_with_device_empty", s.m.Emptied(), "ratio", bySteps),
		FalsifiedBy: "a run that reads the loss every 50 steps whose step is no shorter",
	}, share)
}

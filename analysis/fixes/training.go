package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// moveOffMain moves work of the training process into the workers: 25 ms between next() and the launch became part of builds
// that the device does not see (scenario S21; F40 is its shape, a packer in the main process).
func moveOffMain(j *job, s state) proposal {
	l := s.law
	if !j.model.Known.Host || l.Workers == 0 || l.Host < 0.1*l.Compute || j.model.Launching() {
		return proposal{}
	}
	move := func(part float64) func(*state) {
		return func(s *state) {
			x := part * s.law.Host
			s.shorten(x)
			s.law.Host -= x
			s.law.MainCPU = max(0, s.law.MainCPU-x)
			s.law.CPU += x / s.law.Fetches
			s.law.Work += x / s.law.Fetches
		}
	}
	p := proposal{
		title: "move work from the training process into the workers", effort: fewLines,
		how:     "do what happens between next() and the first launch (tokenising, packing, conversion, logging) in the dataset or in collate_fn",
		assumes: []string{fmt.Sprintf("the %s of a step in which the training process computes and the device idles are work on samples (interval: half of it)", phrase.Duration(l.Host))},
		change:  move(1), worst: move(0.5),
	}
	if !j.p.Device.Launches.IsKnown() {
		p.assumes[0] += "; launches were not counted, so it may be launching kernels instead"
		p.worst = func(*state) {}
	}
	return p
}

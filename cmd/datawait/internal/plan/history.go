package plan

import "time"

// history keeps how steps and waits went on, as seen from the slowest rank: the one that the others wait for.
type history struct {
	samples []sample // in order of time
	live    *pace    // before the first block, kept when the test begins
}

type sample struct {
	at      time.Duration
	steps   uint64
	fetches uint64
	wait    time.Duration
}

const maxSamples = 4096 // at five a second the last 14 minutes

func (h *history) add(v View) {
	r := slowest(v)
	if len(h.samples) >= maxSamples {
		h.samples = append(h.samples[:0], h.samples[maxSamples/2:]...)
	}
	h.samples = append(h.samples, sample{v.Now, r.Steps, r.Fetches, r.Wait})
}

// began is when the first step had been seen.
func (h *history) began() time.Duration {
	for _, s := range h.samples {
		if s.steps > 0 {
			return s.at
		}
	}
	return 0
}

// pace is what one step took, and how much of it was waiting.
type pace struct {
	step, wait time.Duration
	fetches    float64 // per step
}

// since returns the pace from the first sample at or past a step and a time, up to the last one; ok is false before
// two steps were seen in between. A sample falls somewhere inside a step, so a pace over n steps is off by up to 1/n.
func (h *history) since(step uint64, at time.Duration) (p pace, ok bool) {
	if len(h.samples) == 0 {
		return p, false
	}
	last := h.samples[len(h.samples)-1]
	for _, s := range h.samples {
		if s.steps < step || s.at < at {
			continue
		}
		n := last.steps - s.steps
		if n < 2 {
			return p, false
		}
		return pace{
			step:    (last.at - s.at) / time.Duration(n),
			wait:    (last.wait - s.wait) / time.Duration(n),
			fetches: float64(last.fetches-s.fetches) / float64(n),
		}, true
	}
	return p, false
}

// slowest returns the rank with the fewest steps.
func slowest(v View) Rank {
	slow := v.Ranks[0]
	for _, r := range v.Ranks {
		if r.Steps < slow.Steps {
			slow = r
		}
	}
	return slow
}

// furthest returns the rank with the most steps.
func furthest(v View) Rank {
	far := v.Ranks[0]
	for _, r := range v.Ranks {
		if r.Steps > far.Steps {
			far = r
		}
	}
	return far
}

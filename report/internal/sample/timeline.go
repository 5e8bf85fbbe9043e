package sample

import (
	"math"

	"github.com/datawait/datawait/analysis"
)

// retailTimeline draws two steps of computing and one long wait for every pair of batches, as two workers make it.
func retailTimeline() analysis.Timeline {
	t := analysis.Timeline{Seconds: 161.2}
	busy := analysis.TimelineGPU{UUID: "GPU-5b1c9a70-11aa-4d2e-9f00-0123456789ab"}
	t.Marks = append(t.Marks, analysis.TimelineMark{Interval: analysis.Interval{Begin: 7.0, End: 7.5}, Name: "epoch_start"})
	at, leg := 7.5, 0
	var work []analysis.Interval
	for at < 155 {
		block := analysis.TimelineBlock{Interval: analysis.Interval{Begin: at}, Leg: []string{"live", "host-cached"}[leg%2], Void: leg == 5}
		for end := at + 7; at < end; {
			at, work = cycle(&t, at, leg%2 == 1, work)
		}
		block.End = at
		if at > 20 {
			t.Blocks = append(t.Blocks, block)
		}
		leg++
	}
	for begin := 0.0; begin < 161; begin += 0.1 {
		for len(work) > 0 && work[0].End < begin {
			work = work[1:]
		}
		busy.Windows = append(busy.Windows, window(begin, begin+0.1, work))
	}
	t.GPU = []analysis.TimelineGPU{busy}
	return t
}

// cycle is two steps: with live data they wait 56 ms once and then compute twice.
func cycle(t *analysis.Timeline, at float64, cached bool, work []analysis.Interval) (float64, []analysis.Interval) {
	if !cached {
		t.Wait = append(t.Wait, analysis.Interval{Begin: at, End: at + 0.0562})
		at += 0.0562
	}
	return at + 0.0322, append(work, analysis.Interval{Begin: at, End: at + 0.0298})
}

// window is what a counter reads between two times; no work ends before the first.
func window(begin, end float64, work []analysis.Interval) analysis.Window {
	if begin > 88 && begin < 89 {
		return analysis.Window{Begin: begin, End: end, SM: math.NaN(), Resident: math.NaN()}
	}
	busy := 0.0
	for _, w := range work {
		if w.Begin > end {
			break
		}
		busy += max(0, min(end, w.End)-max(begin, w.Begin))
	}
	return analysis.Window{Begin: begin, End: end, SM: 0.95 * busy / (end - begin), Resident: busy / (end - begin)}
}

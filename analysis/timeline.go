package analysis

import (
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// timeline lays the run out over time, for pictures.
func (r *run) timeline() {
	t := &r.out.Timeline
	t.Seconds = float64(r.end-r.begin) / 1e9
	for _, d := range r.devices {
		t.GPU = append(t.GPU, TimelineGPU{UUID: d.Note.UUID, Windows: d.drawn})
	}
	if len(r.ranked) == 0 {
		return
	}
	k := r.ranked[0]
	for _, w := range k.drawn.waits {
		t.Wait = append(t.Wait, r.interval(k.Node, w.begin, w.end))
	}
	for _, s := range k.drawn.starts {
		t.Marks = append(t.Marks, TimelineMark{r.interval(k.Node, s.begin, s.end), "epoch start"})
	}
	for i := range k.Blocks {
		b := &k.Blocks[i]
		leg := recording.Leg(b.Ref)
		t.Blocks = append(t.Blocks, TimelineBlock{r.interval(k.Node, int64(b.Begin), int64(b.End)), leg.String(), !counted(b, leg)})
	}
	for _, m := range k.Marks {
		switch m.Code {
		case recording.MarkValidation:
			t.Marks = append(t.Marks, TimelineMark{r.interval(k.Node, m.Begin, m.End), "validation"})
		case recording.MarkCheckpoint:
			t.Marks = append(t.Marks, TimelineMark{r.interval(k.Node, m.Begin, m.End), "checkpoint"})
		}
	}
}

// seconds since the first observation.
func (r *run) seconds(n *load.Node, t int64) float64 { return float64(t+n.Shift-r.begin) / 1e9 }

func (r *run) interval(n *load.Node, begin, end int64) Interval {
	return Interval{r.seconds(n, begin), r.seconds(n, end)}
}

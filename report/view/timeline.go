package view

import (
	"math"

	"github.com/datawait/datawait/analysis"
)

// Timeline is the run over time, reduced to what a picture can show.
type Timeline struct {
	Panels []Panel // the whole run, then a closer look
	Note   string  // which GPU and which rank
	Words  string  // why there is no picture; "" where there is one
}

// Panel is one span of time, cut into columns of equal length.
type Panel struct {
	Title      string
	Begin, End float64 // seconds since the first observation
	Columns    []Pixel
	Blocks     []Span // of the cached-data test
	Marks      []Span // epoch starts, validation, checkpoints
}

// Pixel is what happened in one column. Minimum and maximum are kept, so that a short stall cannot vanish in a mean.
type Pixel struct {
	SMKnown              bool
	SMMin, SMMax, SMMean float64 // 0–1
	Wait                 float64 // share of the column that the training thread waited for data
}

// Span is a named stretch of time.
type Span struct {
	Begin, End float64
	ID, Name   string
	Void       bool // a block that does not count
}

// columns is how many columns a panel has: about one per pixel of a wide page.
const columns = 900

func timeline(r *analysis.Result) Timeline {
	t := r.Timeline
	length := runLength(t)
	gpu := drawnGPU(r)
	if length <= 0 || len(gpu.Windows) == 0 && len(t.Wait) == 0 {
		return Timeline{Words: "No timeline was recorded."}
	}
	out := Timeline{Note: timelineNote(r, gpu)}
	out.Panels = append(out.Panels, panel(t, gpu, "The whole run", 0, length))
	if begin, end, name, ok := closer(r, gpu, length); ok {
		out.Panels = append(out.Panels, panel(t, gpu, name, begin, end))
	}
	return out
}

// runLength is the length of the run, or the last time anything was seen where the length is not known.
func runLength(t analysis.Timeline) float64 {
	if finite(t.Seconds) && t.Seconds > 0 {
		return t.Seconds
	}
	last := 0.0
	for _, w := range t.Wait {
		last = later(last, w.End)
	}
	for _, g := range t.GPU {
		for _, w := range g.Windows {
			last = later(last, w.End)
		}
	}
	return last
}

func later(a, b float64) float64 {
	if finite(b) && b > a {
		return b
	}
	return a
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// drawnGPU is the GPU of the rank whose wait is drawn; the first one where that is not known.
func drawnGPU(r *analysis.Result) analysis.TimelineGPU {
	if len(r.Ranks) > 0 {
		uuid, ok := r.Ranks[0].GPUUUID.Get()
		for _, g := range r.Timeline.GPU {
			if ok && g.UUID == uuid {
				return g
			}
		}
	}
	if len(r.Timeline.GPU) > 0 {
		return r.Timeline.GPU[0]
	}
	return analysis.TimelineGPU{}
}

func timelineNote(r *analysis.Result, gpu analysis.TimelineGPU) string {
	rank := "the first rank"
	if len(r.Ranks) > 0 {
		rank = "rank " + count(r.Ranks[0].Rank)
	}
	if len(gpu.Windows) == 0 {
		return "Data wait of " + rank + ". SM activity unknown: no counters of its GPU."
	}
	return "SM activity of GPU " + shortUUID(gpu.UUID) + " and data wait of " + rank + "."
}

// closer chooses the span of the closer look: the change from live data to batches in memory where the test has one, else
// the middle of the run. It is long enough for a dozen steps and two dozen counter windows, and much shorter than the run.
func closer(r *analysis.Result, gpu analysis.TimelineGPU, length float64) (begin, end float64, name string, ok bool) {
	span := 0.0
	if n := len(gpu.Windows); n > 0 {
		w := gpu.Windows[n/2]
		span = 24 * (w.End - w.Begin)
	}
	if e, known := r.Step.MeanSeconds.Get(); known {
		span = max(span, 12*e.Value)
	}
	if !finite(span) || span <= 0 || span > length/2 {
		return 0, 0, "", false
	}
	middle, what := length/2, "in the middle of the run"
	if at, found := changeToCached(r.Timeline.Blocks); found {
		middle, what = at, "around a change from live data to batches in memory"
	}
	begin = max(0, min(middle-span/2, length-span))
	return begin, begin + span, "A closer look: " + duration(span) + " " + what, true
}

// changeToCached finds the end of the first counted live block that a counted cached block follows.
func changeToCached(blocks []analysis.TimelineBlock) (float64, bool) {
	for i := 1; i < len(blocks); i++ {
		a, b := blocks[i-1], blocks[i]
		if a.Leg == "live" && b.Leg == "host-cached" && !a.Void && !b.Void && finite(a.End) {
			return a.End, true
		}
	}
	return 0, false
}

func panel(t analysis.Timeline, gpu analysis.TimelineGPU, title string, begin, end float64) Panel {
	p := Panel{Title: title, Begin: begin, End: end, Columns: reduce(gpu.Windows, t.Wait, begin, end)}
	for _, b := range t.Blocks {
		if s, ok := clipSpan(b.Interval, begin, end); ok {
			s.ID, s.Name, s.Void = cleanName(b.Leg), legName(b.Leg), b.Void
			p.Blocks = append(p.Blocks, s)
		}
	}
	for _, m := range t.Marks {
		if s, ok := clipSpan(m.Interval, begin, end); ok {
			s.ID, s.Name = cleanName(m.Name), accountName(m.Name)
			p.Marks = append(p.Marks, s)
		}
	}
	return p
}

func clipSpan(i analysis.Interval, begin, end float64) (Span, bool) {
	if !finite(i.Begin) || !finite(i.End) {
		return Span{}, false
	}
	s := Span{Begin: max(begin, i.Begin), End: min(end, i.End)}
	return s, s.Begin < s.End
}

// reduce folds windows and waits into columns.
func reduce(windows []analysis.Window, waits []analysis.Interval, begin, end float64) []Pixel {
	px := make([]Pixel, columns)
	seen := make([]float64, columns) // seconds of a column that known windows cover
	width := (end - begin) / columns
	for _, w := range windows {
		if !finite(w.SM) {
			continue
		}
		eachColumn(w.Begin, w.End, begin, width, func(i int, overlap float64) {
			p := &px[i]
			if !p.SMKnown {
				*p = Pixel{SMKnown: true, SMMin: w.SM, SMMax: w.SM}
			}
			p.SMMin, p.SMMax = min(p.SMMin, w.SM), max(p.SMMax, w.SM)
			p.SMMean += w.SM * overlap
			seen[i] += overlap
		})
	}
	for i := range px {
		if seen[i] > 0 {
			px[i].SMMean = max(px[i].SMMin, min(px[i].SMMax, px[i].SMMean/seen[i]))
		}
	}
	for _, w := range waits {
		eachColumn(w.Begin, w.End, begin, width, func(i int, overlap float64) { px[i].Wait = min(1, px[i].Wait+overlap/width) })
	}
	return px
}

// eachColumn calls f for every column that [from, to) overlaps, with the length of the overlap.
func eachColumn(from, to, begin, width float64, f func(i int, overlap float64)) {
	if !finite(from) || !finite(to) || to <= from || to <= begin || from >= begin+columns*width {
		return
	}
	first := max(0, int((from-begin)/width))
	last := min(columns-1, int((to-begin)/width))
	for i := first; i <= last; i++ {
		left := begin + float64(i)*width
		if overlap := min(to, left+width) - max(from, left); overlap > 0 {
			f(i, overlap)
		}
	}
}

package view

import (
	"math"

	"github.com/datawait/datawait/analysis"
)

// Timeline is the run over time, reduced to what a picture can show.
type Timeline struct {
	Panels []Panel // the whole run, then a closer look
	Strips []Strip // every GPU over the whole run, where there are several
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

// Strip is one GPU over the whole run.
type Strip struct {
	Name    string
	Columns []Pixel
}

// Span is a named stretch of time.
type Span struct {
	Begin, End float64
	ID, Name   string
	Void       bool // a block that does not count
}

// columns is how many columns a panel has: about one per pixel of a wide page. A strip has a third of them.
const columns, stripColumns = 900, 300

// maxStrips is how many GPUs have a strip.
const maxStrips = 16

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
	if len(t.GPU) > 1 {
		out.Strips = strips(r, length)
	}
	if n := len(t.GPU); n > maxStrips {
		out.Note += " Shown are " + count(maxStrips) + " of " + count(n) + " GPUs."
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

func strips(r *analysis.Result, length float64) []Strip {
	var out []Strip
	for _, g := range r.Timeline.GPU[:min(maxStrips, len(r.Timeline.GPU))] {
		out = append(out, Strip{gpuLabel(r, g.UUID), reduce(g.Windows, nil, 0, length, stripColumns)})
	}
	return out
}

// gpuLabel names a GPU by the rank that used it.
func gpuLabel(r *analysis.Result, uuid string) string {
	for _, k := range r.Ranks {
		if u, ok := k.GPUUUID.Get(); ok && u == uuid {
			return "rank " + count(k.Rank) + ", " + shortUUID(uuid)
		}
	}
	return shortUUID(uuid)
}

func timelineNote(r *analysis.Result, gpu analysis.TimelineGPU) string {
	rank := "the first rank"
	if len(r.Ranks) > 0 {
		rank = "rank " + count(r.Ranks[0].Rank)
	}
	if len(gpu.Windows) == 0 {
		return "Data wait of " + rank + ". SM activity unknown: no counters of its GPU."
	}
	return "SM activity of " + shortUUID(gpu.UUID) + " and data wait of " + rank + ". Where the blue line is missing, so are the counters."
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
	p := Panel{Title: title, Begin: begin, End: end, Columns: reduce(gpu.Windows, t.Wait, begin, end, columns)}
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

// reduce folds windows and waits into n columns.
func reduce(windows []analysis.Window, waits []analysis.Interval, begin, end float64, n int) []Pixel {
	px := make([]Pixel, n)
	seen := make([]float64, n) // seconds of a column that known windows cover
	width := (end - begin) / float64(n)
	for _, w := range windows {
		if !finite(w.SM) {
			continue
		}
		eachColumn(w.Begin, w.End, begin, width, n, func(i int, overlap float64) {
			p := &px[i]
			low, high := w.SM, w.SM
			if w.Folded > 0 {
				low, high = w.Low, w.High
			}
			if !p.SMKnown {
				*p = Pixel{SMKnown: true, SMMin: low, SMMax: high}
			}
			p.SMMin, p.SMMax = min(p.SMMin, low), max(p.SMMax, high)
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
		eachColumn(w.Begin, w.End, begin, width, n, func(i int, overlap float64) { px[i].Wait = min(1, px[i].Wait+overlap/width) })
	}
	return px
}

// eachColumn calls f for every column that [from, to) overlaps, with the length of the overlap.
func eachColumn(from, to, begin, width float64, n int, f func(i int, overlap float64)) {
	if !finite(from) || !finite(to) || to <= from || to <= begin || from >= begin+float64(n)*width {
		return
	}
	from, to = max(from, begin), min(to, begin+float64(n)*width)
	first := max(0, int((from-begin)/width))
	last := min(n-1, int((to-begin)/width))
	for i := first; i <= last; i++ {
		left := begin + float64(i)*width
		if overlap := min(to, left+width) - max(from, left); overlap > 0 {
			f(i, overlap)
		}
	}
}

package plots

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/datawait/datawait/report/view"
)

// Timeline draws SM activity over data wait, once for the whole run and once close up. Each column of pixels shows the
// least and the most SM activity in it, and how much of it the training thread waited.
func Timeline(t view.Timeline) Figure {
	if len(t.Panels) == 0 {
		return Figure{}
	}
	n, strips := len(t.Panels), vg.Length(0)
	if len(t.Strips) > 0 {
		strips = vg.Length(len(t.Strips)*stripHeight + 30)
	}
	height := vg.Length(n*panelHeight) + strips
	return Figure{Name: "timeline", Alt: timelineAlt(t), Width: timelineWidth, Height: height, draw: func(p *pen) {
		for i, panel := range t.Panels {
			top := height - vg.Length(i*panelHeight)
			p.text(bold(left(normal, ink)), 0, top-9, panel.Title)
			area := draw.Crop(p.Canvas, 0, -8, top-panelHeight+4, top-height-40)
			chart(panel).Draw(area)
		}
		p.timelineKey(t, timelineWidth, height-9)
		p.strips(t, strips)
	}}
}

const timelineWidth, panelHeight, stripHeight = 1224, 204, 30

// chart is the plot of one panel: time to the right, shares up.
func chart(panel view.Panel) *plot.Plot {
	p := plot.New()
	p.TextHandler = fonts
	p.BackgroundColor = nil
	axis(&p.X, panel.Begin, panel.End, seconds{})
	axis(&p.Y, 0, 1, shares{})
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XCenter, text.YTop
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	p.Add(waits{panel}, activity{panel}, blocks{panel})
	return p
}

func axis(a *plot.Axis, low, high float64, ticks plot.Ticker) {
	a.Min, a.Max, a.Padding = low, high, 0
	a.Color, a.LineStyle.Color, a.LineStyle.Width = rule.light, rule.light, 1
	a.Tick.Color, a.Tick.LineStyle.Color, a.Tick.LineStyle.Width, a.Tick.Length = rule.light, rule.light, 1, 4
	a.Tick.Label = left(small, muted)
	a.Tick.Marker = ticks
}

// shares marks 0, 50 and 100 %.
type shares struct{}

func (shares) Ticks(_, _ float64) []plot.Tick {
	return []plot.Tick{{Value: 0, Label: "0"}, {Value: 0.5, Label: "50"}, {Value: 1, Label: "100 %"}}
}

// seconds marks round times.
type seconds struct{}

func (seconds) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	last := -1
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label, last = strconv.FormatFloat(math.Round(t.Value*1e6)/1e6, 'f', -1, 64), i
		}
	}
	if last >= 0 {
		ticks[last].Label += " s"
	}
	return ticks
}

// waits fills each column up to the share of it that was spent waiting.
type waits struct{ view.Panel }

func (w waits) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	outline := func(from, to int) {
		var path vg.Path
		path.Move(vg.Point{X: x(w.at(from)), Y: y(0)})
		for i := from; i < to; i++ {
			top := y(w.Columns[i].Wait)
			path.Line(vg.Point{X: x(w.at(i)), Y: top})
			path.Line(vg.Point{X: x(w.at(i + 1)), Y: top})
		}
		path.Line(vg.Point{X: x(w.at(to)), Y: y(0)})
		path.Close()
		c.SetColor(faded(waiting, 90))
		c.Fill(path)
	}
	runs(len(w.Columns), func(i int) bool { return w.Columns[i].Wait > 0 }, outline)
}

// at is the time at which a column begins.
func (w waits) at(i int) float64 { return columnTime(w.Panel, i) }

func columnTime(p view.Panel, i int) float64 {
	return p.Begin + (p.End-p.Begin)*float64(i)/float64(len(p.Columns))
}

// runs calls f for every stretch [from, to) of columns for which ok holds.
func runs(n int, ok func(int) bool, f func(from, to int)) {
	from := -1
	for i := 0; i <= n; i++ {
		on := i < n && ok(i)
		switch {
		case on && from < 0:
			from = i
		case !on && from >= 0:
			f(from, i)
			from = -1
		}
	}
}

// activity draws the band between least and most SM activity and the line of its mean; where counters were missing, nothing.
type activity struct{ view.Panel }

func (a activity) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	pn := &pen{c}
	pn.band(a.Columns, func(i int) vg.Length { return x(columnTime(a.Panel, i)) }, func(s float64) vg.Length { return y(between(s, 0, 1)) })
}

// band draws columns of SM activity; left gives the left edge of a column, level the height of a share.
func (p *pen) band(columns []view.Pixel, left func(int) vg.Length, level func(float64) vg.Length) {
	runs(len(columns), func(i int) bool { return columns[i].SMKnown }, func(from, to int) {
		var band, mean vg.Path
		for i := from; i < to; i++ {
			l, r := left(i), left(i+1)
			line(&band, i == from, vg.Point{X: l, Y: level(columns[i].SMMax)}, vg.Point{X: r, Y: level(columns[i].SMMax)})
			line(&mean, i == from, vg.Point{X: l, Y: level(columns[i].SMMean)}, vg.Point{X: r, Y: level(columns[i].SMMean)})
		}
		for i := to - 1; i >= from; i-- {
			line(&band, false, vg.Point{X: left(i + 1), Y: level(columns[i].SMMin)}, vg.Point{X: left(i), Y: level(columns[i].SMMin)})
		}
		band.Close()
		p.SetColor(faded(working, 70))
		p.Fill(band)
		p.SetLineStyle(draw.LineStyle{Color: working.light, Width: 1.1})
		p.Stroke(mean)
	})
}

// strips draws each GPU of the job over the whole run, one below the other.
func (p *pen) strips(t view.Timeline, top vg.Length) {
	const name, gap = 150, 6
	if len(t.Strips) == 0 {
		return
	}
	p.text(bold(left(normal, ink)), 0, top-9, "SM activity of every GPU, 0 to 100 %")
	for n, s := range t.Strips {
		floor := top - 24 - vg.Length((n+1)*stripHeight)
		p.text(left(small, ink), 0, floor+stripHeight/2-gap/2, fit(left(small, ink), s.Name, name-8))
		p.box(track, name, floor, timelineWidth-8, floor+stripHeight-gap)
		width := vg.Length(timelineWidth - 8 - name)
		p.band(s.Columns, func(i int) vg.Length { return name + width*vg.Length(i)/vg.Length(len(s.Columns)) },
			func(x float64) vg.Length { return floor + (stripHeight-gap)*vg.Length(between(x, 0, 1)) })
	}
}

// line adds points to a path, leaving out those that do not move.
func line(p *vg.Path, first bool, points ...vg.Point) {
	for i, pt := range points {
		if first && i == 0 {
			p.Move(pt)
		} else if last := (*p)[len(*p)-1].Pos; last != pt {
			p.Line(pt)
		}
	}
}

// blocks marks the blocks of the test and the named stretches along the top edge.
type blocks struct{ view.Panel }

func (b blocks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	pn := &pen{c}
	for _, s := range b.Blocks {
		pn.box(blockRole(s), x(s.Begin), y(1)+3, x(s.End), y(1)+7)
	}
	for _, s := range b.Marks {
		pn.box(startOf, x(s.Begin), y(1)+3, max(x(s.End), x(s.Begin)+1.5), y(1)+7)
	}
	if spans := append(slices.Clone(b.Blocks), b.Marks...); allFit(spans, x) {
		for _, s := range spans {
			pn.text(mid(small-1, muted), (x(s.Begin)+x(s.End))/2, y(1)+14, spanName(s))
		}
	}
}

func blockRole(s view.Span) role {
	switch {
	case s.Void:
		return idle
	case s.ID == "live":
		return waiting
	}
	return working
}

func spanName(s view.Span) string {
	if s.Void {
		return s.Name + ", does not count"
	}
	return s.Name
}

// allFit reports whether every name fits over its stretch; if not, none is written.
func allFit(spans []view.Span, x func(float64) vg.Length) bool {
	for _, s := range spans {
		if widthOf(mid(small-1, muted), spanName(s)) > x(s.End)-x(s.Begin)-6 {
			return false
		}
	}
	return true
}

// timelineKey names the colours at the upper right.
func (p *pen) timelineKey(t view.Timeline, width, y vg.Length) {
	keys := []key{{waiting, "data wait, share of the time", 10}}
	if slices.ContainsFunc(t.Panels[0].Columns, func(p view.Pixel) bool { return p.SMKnown }) {
		keys = append(keys, key{working, "SM activity, mean and least to most", 10})
	}
	if len(t.Panels[0].Blocks) > 0 {
		keys = append(keys, key{working, "block on batches in memory", 4}, key{waiting, "block on live data", 4})
	}
	x := width
	for _, k := range keys {
		x -= widthOf(left(small, muted), k.words)
		p.text(left(small, muted), x, y, k.words)
		p.box(k.color, x-14, y-k.height/2, x-4, y+k.height/2)
		x -= 30
	}
}

type key struct {
	color  role
	words  string
	height vg.Length
}

func timelineAlt(t view.Timeline) string {
	var titles []string
	for _, p := range t.Panels {
		titles = append(titles, p.Title)
	}
	return t.Note + " " + strings.Join(titles, "; ") + "."
}

package plots

import (
	"image/color"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// pen draws on a canvas whose unit is one pixel of a page and whose origin is at the lower left.
type pen struct{ draw.Canvas }

// Sizes of type.
const (
	small  = 11
	normal = 12.5
)

// fonts is a set of its own, so that nothing else in the process can change what a report looks like.
var fonts = text.Plain{Fonts: font.NewCache(liberation.Collection())}

func style(size vg.Length, r role, x text.XAlignment, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return text.Style{Color: r.light, Font: f, XAlign: x, YAlign: text.YCenter, Handler: fonts}
}

func left(size vg.Length, r role) text.Style  { return style(size, r, text.XLeft, false) }
func right(size vg.Length, r role) text.Style { return style(size, r, text.XRight, false) }
func mid(size vg.Length, r role) text.Style   { return style(size, r, text.XCenter, false) }

func bold(s text.Style) text.Style {
	s.Font.Weight = xfont.WeightBold
	return s
}

func (p *pen) text(s text.Style, x, y vg.Length, words string) {
	p.FillText(s, vg.Point{X: x, Y: y}, words)
}

// widthOf is how wide words are in a style.
func widthOf(s text.Style, words string) vg.Length { return s.Width(words) }

// fit shortens words until they are at most w wide.
func fit(s text.Style, words string, w vg.Length) string {
	if widthOf(s, words) <= w {
		return words
	}
	r := []rune(words)
	for len(r) > 0 && widthOf(s, string(r)+"…") > w {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// box fills a rectangle given by two corners.
func (p *pen) box(r role, x0, y0, x1, y1 vg.Length) { p.tint(r, 255, x0, y0, x1, y1) }

// tint fills a rectangle with a part of the strength of a colour.
func (p *pen) tint(r role, alpha uint8, x0, y0, x1, y1 vg.Length) {
	p.SetColor(faded(r, alpha))
	p.Fill(rectangle(x0, y0, x1, y1))
}

func faded(r role, alpha uint8) color.NRGBA {
	return color.NRGBA{r.light.R, r.light.G, r.light.B, alpha}
}

func rectangle(x0, y0, x1, y1 vg.Length) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: x0, Y: y0})
	p.Line(vg.Point{X: x1, Y: y0})
	p.Line(vg.Point{X: x1, Y: y1})
	p.Line(vg.Point{X: x0, Y: y1})
	p.Close()
	return p
}

// stroke draws a line through points.
func (p *pen) stroke(r role, width vg.Length, dashes []vg.Length, points ...vg.Point) {
	p.SetLineStyle(draw.LineStyle{Color: r.light, Width: width, Dashes: dashes})
	var path vg.Path
	for i, pt := range points {
		if i == 0 {
			path.Move(pt)
		} else {
			path.Line(pt)
		}
	}
	p.Stroke(path)
}

// whisker draws an interval around the end of a bar.
func (p *pen) whisker(x0, x1, y, half vg.Length) {
	for _, x := range []vg.Length{x0, x1} {
		p.stroke(ink, 1.2, nil, vg.Point{X: x, Y: y - half}, vg.Point{X: x, Y: y + half})
	}
	p.stroke(ink, 1.2, nil, vg.Point{X: x0, Y: y}, vg.Point{X: x1, Y: y})
}

func between(x, low, high float64) float64 { return max(low, min(high, x)) }

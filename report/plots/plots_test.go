package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/view"
)

// Every figure of every sample is drawn, has words for those who cannot see it, and is well-formed as SVG without anything active in it.
func TestFigures(t *testing.T) {
	for _, c := range sample.All() {
		for _, f := range All(view.New(c.Result)) {
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			if f.Alt == "" || len(f.Name) == 0 {
				t.Errorf("%s: a figure without words: %+v", c.Name, f)
			}
			checkSVG(t, c.Name+" "+f.Name, svg)
		}
	}
}

func TestFleetsFigures(t *testing.T) {
	drawn := 0
	for _, c := range sample.Clusters() {
		f := Fleet(view.NewFleet(c.Fleet))
		if f.Empty() {
			continue
		}
		drawn++
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		checkSVG(t, c.Name, svg)
	}
	if drawn < 3 {
		t.Errorf("%d figures", drawn)
	}
}

func checkSVG(t *testing.T, name, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if tag := start.Name.Local; tag != "svg" && tag != "g" && tag != "path" && tag != "text" {
			t.Errorf("%s: element %s", name, tag)
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "#000000") {
				t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
			}
		}
	}
}

// Text and shapes stand out from the paper in light and in dark (WCAG 2.2: 4.5 for text, 3 for shapes that carry meaning).
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		roles []role
		least float64
	}{{[]role{ink, muted, working}, 4.5}, {[]role{waiting, matrix, held, copying, collective, hostWork, pausing}, 3}} {
		for _, r := range c.roles {
			if got := contrast(r.light, paper.light); got < c.least {
				t.Errorf("%s in light: %.2f", r.name, got)
			}
			if got := contrast(r.dark, paper.dark); got < c.least {
				t.Errorf("%s in dark: %.2f", r.name, got)
			}
		}
	}
}

func contrast(a, b color.RGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c color.RGBA) float64 {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// Each colour is named by its light value inside an SVG, so no two may share one.
func TestColoursDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, r := range roles {
		if other, ok := seen[hex(r.light)]; ok {
			t.Errorf("%s and %s are both %s", r.name, other, hex(r.light))
		}
		seen[hex(r.light)] = r.name
	}
}

// The bar of a share is as long as the share.
func TestLadderIsToScale(t *testing.T) {
	b, err := Ladder(view.New(sample.Retail()).Ladder).PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	want, got := working.light, 0
	for y := range img.Bounds().Dy() {
		n := 0
		for x := range img.Bounds().Dx() {
			if c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA); c == want {
				n++
			}
		}
		got = max(got, n)
	}
	const full = (400 - 74 - 46) * 2 // two dots per pixel
	if share := float64(got) / full; math.Abs(share-0.26) > 0.005 {
		t.Errorf("the bar of 26 %% is %.3f of the full length", share)
	}
}

func BenchmarkSVG(b *testing.B) {
	v := view.New(sample.Retail())
	for b.Loop() {
		for _, f := range All(v) {
			if _, err := f.SVG(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

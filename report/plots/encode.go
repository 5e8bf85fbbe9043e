package plots

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// dotsPerInch makes a PNG of two dots per pixel of the page, so that it stays sharp on a dense screen.
const dotsPerInch = 144

// PNG draws the figure on white paper.
func (f Figure) PNG() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(dotsPerInch), vgimg.UseBackgroundColor(paper.light))
	f.on(c, true)
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&out); err != nil {
		return nil, fmt.Errorf("drawing %s: %w", f.Name, err)
	}
	return out.Bytes(), nil
}

// SVG draws the figure as an element to be put inside a page. Its colours are the page's custom properties, so they follow
// light and dark; where there is no page they are those of light. It holds no script, no link and no style sheet.
func (f Figure) SVG() (string, error) {
	c := vgsvg.New(f.Width, f.Height)
	f.on(c, false)
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return "", fmt.Errorf("drawing %s: %w", f.Name, err)
	}
	return f.inline(out.String())
}

// written is a piece of text as vgsvg writes it: what comes before its style, weight and size, the rest of the tag, and the words.
var written = regexp.MustCompile(`<text ([^>]*style="font-weight:(\w+);font-size:([0-9.]+)px[^>]*)>([^<]+)</text>`)

// asWide makes every piece of text as wide as it was measured, whatever font the reader has: where neither Liberation Sans nor one of its
// widths is, another would run over the edge and into its neighbours.
func asWide(svg string) string {
	return written.ReplaceAllStringFunc(svg, func(tag string) string {
		m := written.FindStringSubmatch(tag)
		size, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return tag
		}
		width := widthOf(style(vg.Length(size), ink, text.XLeft, m[2] == "bold"), html.UnescapeString(m[4]))
		return fmt.Sprintf(`<text textLength="%.5g" lengthAdjust="spacingAndGlyphs" %s>%s</text>`, width.Points(), m[1], m[4])
	})
}

// fontDescription is how vgsvg names a font; the family is put in quotes and given neighbours of the same widths.
var fontDescription = regexp.MustCompile(`font-family:Liberation Sans;font-variant:normal;font-weight:(\w+);font-style:normal`)

func (f Figure) inline(svg string) (string, error) {
	_, body, ok := strings.Cut(svg, `xmlns:xlink="http://www.w3.org/1999/xlink">`)
	if !ok {
		return "", fmt.Errorf("drawing %s: the SVG has an unknown head", f.Name)
	}
	body = fontDescription.ReplaceAllString(body, "font-weight:$1")
	for _, r := range roles {
		value, variable := strings.ToUpper(hex(r.light)), "var(--"+r.name+","+hex(r.light)+")"
		body = strings.NewReplacer("fill:"+value, "fill:"+variable, "stroke:"+value, "stroke:"+variable).Replace(body)
	}
	head := fmt.Sprintf(`<svg viewBox="0 0 %.5g %.5g" width="%.5g" height="%.5g" role="img" aria-label="%s" font-family="'Liberation Sans',Arial,Helvetica,sans-serif">`,
		f.Width.Points(), f.Height.Points(), f.Width.Points(), f.Height.Points(), html.EscapeString(f.Alt))
	return head + asWide(body), nil
}

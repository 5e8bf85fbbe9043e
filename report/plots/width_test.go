package plots

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/view"
)

// Where a reader has none of the fonts, words would run over the edge: every piece of text says how wide it was measured.
func TestTextSaysHowWideItIs(t *testing.T) {
	widths := regexp.MustCompile(`<text textLength="([0-9.]+)"`)
	for _, f := range All(view.New(sample.Retail())) {
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		found := widths.FindAllStringSubmatch(svg, -1)
		if n := strings.Count(svg, "<text"); n == 0 || len(found) != n {
			t.Errorf("%s: %d of %d pieces of text say it", f.Name, len(found), n)
		}
		for _, m := range found {
			if w, err := strconv.ParseFloat(m[1], 64); err != nil || !(w > 0) || math.IsInf(w, 0) || w > f.Width.Points() {
				t.Errorf("%s: %s wide in a figure of %v", f.Name, m[1], f.Width.Points())
			}
		}
	}
}

package report

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/track"
	"github.com/datawait/datawait/probe/unit"
	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/terminal"
)

// comparisons are the samples of two runs side by side and what is rendered of each, once for all tests.
var comparisons = sync.OnceValue(func() []sideBySide {
	var out []sideBySide
	for _, p := range sample.Pairs() {
		files, err := RenderComparison(p.Comparison, ComparisonFormats())
		out = append(out, sideBySide{p.Name, p.Comparison, files, err})
	}
	return out
})

type sideBySide struct {
	name       string
	comparison *compare.Comparison
	files      map[string][]byte
	err        error
}

// Every comparison reads as its golden files do, and its document matches the schema.
func TestComparisonsAreAsTheirGoldenFiles(t *testing.T) {
	for _, c := range comparisons() {
		if c.err != nil {
			t.Fatalf("%s: %v", c.name, c.err)
		}
		var screen bytes.Buffer
		if err := CompareTerminal(&screen, c.comparison, terminal.Options{Files: []string{"compare.html"}, Dir: "out/"}); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name+".txt", screen.Bytes())
		golden(t, c.name+".md", c.files["compare.md"])
		golden(t, c.name+".html", picture.ReplaceAll(c.files["compare.html"], []byte("$1…</svg>")))
	}
}

func TestAComparisonMakesTheFilesItNames(t *testing.T) {
	got := Names(comparisons()[0].files)
	if want := []string{"compare.html", "compare.md", "compare.json", "compare-steps.png"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := RenderComparison(comparisons()[0].comparison, []Format{Plots}); err == nil || !strings.Contains(err.Error(), "png") {
		t.Errorf("a form that a comparison does not have: %v", err)
	}
}

// A refused comparison shows no difference in any form.
func TestARefusalShowsNoDifference(t *testing.T) {
	for _, c := range comparisons() {
		if c.comparison.Comparable {
			continue
		}
		for name, text := range c.files {
			for _, word := range []string{"better", "worse", "no meaningful", " points"} {
				if body := text[max(0, bytes.Index(text, []byte("</style>"))):]; bytes.Contains(bytes.ReplaceAll(body, []byte("there is no meaningful difference"), nil), []byte(word)) && !strings.HasSuffix(name, ".json") {
					t.Errorf("%s: %s says %q", c.name, name, word)
				}
			}
		}
	}
}

// Whatever is missing on either side, no form shows a zero in its place, or something that is no number, and none fails.
func TestAnythingMissingOfTwoRuns(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 2))
		rate := random.Float64()
		half := func(r *analysis.Result) compare.Input {
			withoutZeros(reflect.ValueOf(r).Elem())
			drop(reflect.ValueOf(r).Elem(), func() bool { return random.Float64() < rate })
			return compare.Input{Result: r}
		}
		c := compare.Run(half(sample.Retail()), half(sample.MoreWorkers()), compare.Options{Epochs: 3})
		files, err := RenderComparison(c, []Format{HTML, JSON})
		if err != nil {
			t.Fatal(err)
		}
		var screen bytes.Buffer
		if err := CompareTerminal(&screen, c, terminal.Options{}); err != nil {
			t.Fatal(err)
		}
		page := picture.ReplaceAllString(string(files["compare.html"]), "$1")
		for form, s := range map[string]string{"the screen": screen.String(), "the page": page[strings.Index(page, "</style>"):]} {
			if m := shownZero.FindString(s); m != "" {
				t.Errorf("seed %d: %s shows %q for a missing value", seed, form, m)
			}
			if m := noNumber.FindString(s); m != "" {
				t.Errorf("seed %d: %s shows %q", seed, form, m)
			}
		}
	}
}

// A report that ranks fixes says how earlier predictions came out; without any it says nothing of the kind.
func TestAReportQuotesTheTrackRecord(t *testing.T) {
	r := sample.Retail()
	quoted := func() string {
		var b bytes.Buffer
		if err := Terminal(&b, r, terminal.Options{}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	if s := quoted(); strings.Contains(s, "checked here") {
		t.Error("it quotes what nobody checked")
	}
	r.TrackRecord = &track.TrackRecord{Checked: 7, Within: 6, MedianError: unit.Some(0.041), MedianWidth: unit.Some(0.28)}
	if s := quoted(); !strings.Contains(s, "of 7 predictions checked here, 6 fell within their interval; median error 4.1 %, median width of an interval 28 %") {
		t.Error(s)
	}
	r.TrackRecord = &track.TrackRecord{Checked: 1, Within: 0, MedianError: unit.Some(0.3), Emulated: true}
	if s := quoted(); !strings.Contains(s, "of 1 prediction checked here on the emulated GPU, 0 fell within its interval; error 30 %") {
		t.Error(s)
	}
}

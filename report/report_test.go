package report

import (
	"bytes"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/terminal"
)

func TestRenderMakesTheFilesItNames(t *testing.T) {
	files, err := Render(sample.Retail(), Formats())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"report.html", "report.md", "report.json", "report-batch.png", "report-fixes.png", "report-ladder.png", "report-step.png", "report-test.png", "report-timeline.png"}
	if got := Names(files); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, content := range files {
		if strings.HasSuffix(name, ".png") {
			if _, err := png.DecodeConfig(bytes.NewReader(content)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A format that does not exist costs only itself.
func TestRenderKeepsTheRest(t *testing.T) {
	files, err := Render(sample.Retail(), []Format{"pdf", JSON})
	if err == nil || !strings.Contains(err.Error(), "pdf") {
		t.Errorf("the error should name the format: %v", err)
	}
	if len(files["report.json"]) == 0 {
		t.Error("the JSON report should have been made all the same")
	}
}

// A report is the same each time: nothing in it depends on a clock or on the order of a map.
func TestRenderIsDeterministic(t *testing.T) {
	first, err := Render(sample.Hostile(), []Format{HTML, Markdown, JSON})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Render(sample.Hostile(), []Format{HTML, Markdown, JSON})
	if err != nil {
		t.Fatal(err)
	}
	for name := range first {
		if !bytes.Equal(first[name], again[name]) {
			t.Errorf("%s differs from one rendering to the next", name)
		}
	}
}

// The ticket is one page: the limit is the length of the longest sample with room to spare.
func TestTicketIsShort(t *testing.T) {
	for _, c := range situations() {
		if c.name == "hostile" {
			continue
		}
		if n := len(c.files["report.md"]); n > 3500 {
			t.Errorf("%s: %d bytes are no page", c.name, n)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	r := sample.Retail()
	for _, f := range Formats() {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Render(r, []Format{f}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("terminal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := Terminal(io.Discard, r, terminal.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

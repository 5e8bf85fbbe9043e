package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/terminal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// picture is an inline picture of a page. Goldens leave its shapes out: package plots tests them, and they would hide the words.
var picture = regexp.MustCompile(`(?s)(<svg [^>]*role="img"[^>]*>).*?</svg>`)

// situations are the samples and what is rendered of each, once for all tests.
var situations = sync.OnceValue(func() []situation {
	var out []situation
	for _, c := range sample.All() {
		files, err := Render(c.Result, []Format{HTML, Markdown})
		out = append(out, situation{c.Name, c.Result, files, err})
	}
	return out
})

type situation struct {
	name   string
	result *analysis.Result
	files  map[string][]byte
	err    error
}

// Every situation reads as its golden files do. After a change of wording: go test ./report -update, and read the difference.
func TestGolden(t *testing.T) {
	for _, c := range situations() {
		t.Run(c.name, func(t *testing.T) {
			if c.err != nil {
				t.Fatal(c.err)
			}
			var screen bytes.Buffer
			if err := Terminal(&screen, c.result, terminal.Options{Files: []string{"report.html", "report.md", "report.json"}, Dir: "out/"}); err != nil {
				t.Fatal(err)
			}
			golden(t, c.name+".txt", screen.Bytes())
			golden(t, c.name+".md", c.files["report.md"])
			golden(t, c.name+".html", picture.ReplaceAll(c.files["report.html"], []byte("$1…</svg>")))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs at line %d; run with -update and read the difference", name, firstDifference(got, want))
	}
}

func firstDifference(a, b []byte) int {
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return i + 1
		}
	}
	return min(len(la), len(lb))
}

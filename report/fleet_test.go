package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/report/internal/sample"
	"github.com/datawait/datawait/report/terminal"
)

// clusters are the samples of fleets and what is rendered of each, once for all tests.
var clusters = sync.OnceValue(func() []cluster {
	var out []cluster
	for _, c := range sample.Clusters() {
		files, err := RenderFleet(c.Fleet, FleetFormats())
		out = append(out, cluster{c.Name, c.Fleet, files, err})
	}
	return out
})

type cluster struct {
	name  string
	fleet *fleet.Fleet
	files map[string][]byte
	err   error
}

// Every fleet reads as its golden files do, and its document matches the schema.
func TestFleetsAreAsTheirGoldenFiles(t *testing.T) {
	for _, c := range clusters() {
		if c.err != nil {
			t.Fatalf("%s: %v", c.name, c.err)
		}
		var screen bytes.Buffer
		if err := FleetTerminal(&screen, c.fleet, terminal.Options{Files: []string{"fleet.html"}, Dir: "out/"}); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name+".txt", screen.Bytes())
		golden(t, c.name+".md", c.files["fleet.md"])
		golden(t, c.name+".html", picture.ReplaceAll(c.files["fleet.html"], []byte("$1…</svg>")))
	}
}

func TestAFleetMakesTheFilesItNames(t *testing.T) {
	got := Names(clusters()[0].files)
	if want := []string{"fleet.html", "fleet.md", "fleet.json", "fleet-jobs.png"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := RenderFleet(clusters()[0].fleet, []Format{Plots}); err == nil || !strings.Contains(err.Error(), "png") {
		t.Errorf("a form that a fleet does not have: %v", err)
	}
}

// Names and words from outside break out of no form.
func TestFleetsAreSafe(t *testing.T) {
	for _, c := range clusters() {
		for _, columns := range []int{0, 60, 40} {
			checkScreen(t, c.name, columns, func(w io.Writer, o terminal.Options) error { return FleetTerminal(w, c.fleet, o) })
		}
		checkPage(t, c.name, string(c.files["fleet.html"]))
		checkText(t, c.name, string(c.files["fleet.md"]))
		checkTicket(t, c.name, c.files["fleet.md"])
	}
}

// A null of the document has a reason, and nothing unknown is 0.
func TestAFleetsDocumentSaysWhy(t *testing.T) {
	for _, c := range clusters() {
		var doc struct {
			Schema    string                                 `json:"schema"`
			Reasons   map[string]struct{ Kind, Text string } `json:"reasons"`
			Workloads []struct {
				Source string
				Use    struct {
					Waiting struct {
						Hours *float64 `json:"gpu_hours"`
					}
				}
			}
		}
		if err := json.Unmarshal(c.files["fleet.json"], &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Schema != fleet.Schema {
			t.Errorf("%s: schema %s", c.name, doc.Schema)
		}
		for path, r := range doc.Reasons {
			if r.Kind == "" || r.Text == "" || r.Text == "nobody measured it" {
				t.Errorf("%s: %s is null because %q", c.name, path, r.Text)
			}
		}
		for _, w := range doc.Workloads {
			if w.Source == "dcgm-exporter" && w.Use.Waiting.Hours != nil {
				t.Errorf("%s: an exporter tells of %v hours of waiting", c.name, *w.Use.Waiting.Hours)
			}
		}
	}
}

// Whatever is missing, no form shows a zero in its place, or something that is no number, and none fails.
func TestAnythingMissingOfAFleet(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 3))
		rate := random.Float64()
		f := sample.Week()
		withoutZeros(reflect.ValueOf(f).Elem())
		drop(reflect.ValueOf(f).Elem(), func() bool { return random.Float64() < rate })
		files, err := RenderFleet(f, FleetFormats())
		if err != nil {
			t.Fatal(err)
		}
		var screen bytes.Buffer
		if err := FleetTerminal(&screen, f, terminal.Options{}); err != nil {
			t.Fatal(err)
		}
		page := picture.ReplaceAllString(string(files["fleet.html"]), "$1")
		for form, s := range map[string]string{"the screen": screen.String(), "the page": page[strings.Index(page, "</style>"):], "the ticket": string(files["fleet.md"])} {
			if m := shownZero.FindString(s); m != "" {
				t.Errorf("seed %d: %s shows %q for a missing value", seed, form, m)
			}
			if m := noNumber.FindString(s); m != "" {
				t.Errorf("seed %d: %s shows %q", seed, form, m)
			}
		}
	}
}

package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func est(v float64) analysis.Est {
	return unit.Some(stat.Estimate{Value: v, Low: 0.99 * v, High: 1.01 * v, N: 50, Grade: stat.GradeA, Source: "clock"})
}

func sampleRun(sm, wait, step, cached, rate, perBatch float64, requests int64) run {
	r := &analysis.Result{Emulated: true, GPUs: []analysis.GPU{{SMActiveRatio: est(sm), AllocatedNS: 1}},
		Loaders:  []analysis.Loader{{Role: "training", Fetches: 100, Requests: unit.Some(perBatch), BatchesPerEpoch: unit.Some(150), EpochStartSeconds: est(0.1)}},
		Baseline: &analysis.Baseline{Legs: map[string]analysis.Leg{"host-cached": {StepSeconds: est(cached)}}, Conclusion: "input-pipeline"}}
	r.Job.Ranks, r.Job.FetchesPerStep, r.Job.SamplesPerBatch, r.Job.Name = 1, unit.Some(1.0), unit.Some(8.0), "train.py"
	r.Step.DataWaitShare, r.Step.MeanSeconds, r.Job.StepsPerSecond, r.Step.N = est(wait), est(step), est(rate), 100
	return run{result: r, requests: requests}
}

func ended(t *testing.T, before, after run, r repair) (screen, dir string) {
	t.Helper()
	var b bytes.Buffer
	dir = t.TempDir()
	if err := (Options{Out: dir, Stdout: &b}).end(before, after, r); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), dir, "out"), dir
}

func TestTheDemoEndsSideBySide(t *testing.T) {
	before, after := sampleRun(0.27, 0.68, 0.0912, 0.0288, 11.0, 16, 1936), sampleRun(0.80, 0.013, 0.0296, 0.0288, 33.8, 0, 22)
	screen, dir := ended(t, before, after, repair{requests: 2420, took: 2400 * time.Millisecond})
	for _, want := range []string{"Emulated GPU: ", "  a step                  91.2 ms (90.2–92.2)  29.6 ms (29.3–29.9)       −68 %", "SM activity, allocated", "−67 points",
		"10 epochs", "  requests                               2400", `
The GPU was allocated all the time and worked 27 % of it, for it waited for data. Packing the catalogue
into shards once took 2.4 s and 2,420 requests. Fed from shards, 4 batches ahead, the same GPU works 80 %
and makes 3.1× the steps. Over 10 epochs the store is asked 2,442 times instead of 24,000, packing included.
A second GPU, bought before, would have waited as well.

Reports: out/before/report.html and out/after/report.html, side by side in out/compare.html
`} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	for _, name := range []string{"compare.html", "compare.md", "compare.json"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(text, []byte("before")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The README shows the comparison: its names of rows must be those that are printed.
func TestReadmeShowsTheComparison(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	screen, _ := ended(t, sampleRun(0.2, 0.7, 0.1, 0.03, 10, 16, 2000), sampleRun(0.6, 0.1, 0.03, 0.03, 30, 1, 20), repair{})
	_, table, _ := strings.Cut(screen, "difference\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if strings.Count(table, "\n") < 10 {
		t.Fatalf("no table in\n%s", screen)
	}
	for line := range strings.Lines(table) {
		if label, _, ok := strings.Cut(line[2:], "  "); ok && strings.HasPrefix(line, "  ") && !bytes.Contains(readme, []byte("      "+label+" ")) {
			t.Errorf("the README lacks the row %q", label)
		}
	}
}

// What is not known is said, and no story is told of it.
func TestSideBySideUnknown(t *testing.T) {
	nothing := run{result: &analysis.Result{}}
	screen, dir := ended(t, nothing, nothing, repair{})
	if !strings.Contains(screen, "Not comparable") || strings.Contains(screen, "worked") {
		t.Error(screen)
	}
	var c struct{ Comparable *bool }
	text, err := os.ReadFile(filepath.Join(dir, "compare.json"))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || c.Comparable == nil || *c.Comparable {
		t.Errorf("%v, %v", c.Comparable, err)
	}
}

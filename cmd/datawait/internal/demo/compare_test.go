package demo

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func est(v float64) analysis.Est { return unit.Some(stat.Estimate{Value: v, Low: v, High: v}) }

func sampleRun(sm, wait, step, cached, rate, perBatch float64, requests int64) run {
	r := &analysis.Result{GPUs: []analysis.GPU{{SMActiveRatio: est(sm)}}, Loaders: []analysis.Loader{{Fetches: 100, Requests: unit.Some(perBatch)}},
		Baseline: &analysis.Baseline{Legs: map[string]analysis.Leg{"host-cached": {StepSeconds: est(cached)}}, Conclusion: "input-pipeline"}}
	r.Step.DataWaitShare, r.Step.MeanSeconds, r.Job.StepsPerSecond = est(wait), est(step), est(rate)
	return run{result: r, requests: requests}
}

func TestSideBySide(t *testing.T) {
	var b bytes.Buffer
	before, after := sampleRun(0.27, 0.68, 0.0912, 0.0288, 11.0, 16, 1936), sampleRun(0.80, 0.013, 0.0296, 0.0288, 33.8, 0, 22)
	if err := compare(&b, before, after, repair{requests: 2420, took: 2400 * time.Millisecond}, "out"); err != nil {
		t.Fatal(err)
	}
	want := `EMULATED GPU                              before     after
──────────────────────────────────────────────────────────────────
SM activity: the GPU works                  27 %      80 %    3.0×
data wait, of a step                        68 %     1.3 %
a step                                   91.2 ms   29.6 ms
a step on batches in memory              28.8 ms   28.8 ms
steps per second                            11.0      33.8    3.1×
store requests, reckoned for 10 epochs    24,000     2,442   −90 %

The GPU was allocated all the time and worked 27 % of it, for it waited for data. Packing the catalogue
into shards once took 2.4 s and 2,420 of the requests above. Fed from shards, 4 batches ahead, the same GPU
works 80 % and makes 3.1× the steps. A second GPU, bought before, would have waited as well.

Reports: out/before/report.html and out/after/report.html
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// The README shows the comparison: its lines must be those that are printed.
func TestReadmeShowsTheComparison(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := compare(&b, sampleRun(0, 0, 0, 0, 0, 0, 0), sampleRun(0, 0, 0, 0, 0, 0, 0), repair{}, "out"); err != nil {
		t.Fatal(err)
	}
	printed, _, _ := strings.Cut(b.String(), "\n\n")
	for line := range strings.Lines(printed) {
		if label, _, ok := strings.Cut(line, "   "); ok && !bytes.Contains(readme, []byte("    "+label)) {
			t.Errorf("the README lacks the line %q", label)
		}
	}
}

// What is not known is said, and no story is told of it.
func TestSideBySideUnknown(t *testing.T) {
	var b bytes.Buffer
	nothing := run{result: &analysis.Result{}}
	if err := compare(&b, nothing, nothing, repair{}, "out"); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte(unknown)); n != 12 || bytes.Contains(b.Bytes(), []byte("worked")) {
		t.Errorf("%d unknown in\n%s", n, b.String())
	}
}

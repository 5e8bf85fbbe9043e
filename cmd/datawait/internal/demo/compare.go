package demo

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/datawait/datawait/analysis"
)

// repair is what preprocessing once took.
type repair struct {
	requests int64
	took     time.Duration
}

// epochs is the length of training over which requests are compared: preprocessing pays once, the old way pays every epoch.
const epochs = 10

// compare prints both runs side by side, and what that means.
func compare(w io.Writer, before, after run, r repair, out string) error {
	b, a := before.result, after.result
	old, repaired := overEpochs(before, after, r)
	t := table{{"EMULATED GPU", "before", "after", ""}, {},
		{"SM activity: the GPU works", percent(sm(b)), percent(sm(a)), ratio(sm(b), sm(a))},
		{"data wait, of a step", percent(b.Step.DataWaitShare), percent(a.Step.DataWaitShare), ""},
		{"a step", millis(b.Step.MeanSeconds), millis(a.Step.MeanSeconds), ""},
		{"a step on batches in memory", millis(cached(b).StepSeconds), millis(cached(a).StepSeconds), ""},
		{"steps per second", number(b.Job.StepsPerSecond), number(a.Job.StepsPerSecond), ratio(b.Job.StepsPerSecond, a.Job.StepsPerSecond)},
		{fmt.Sprintf("store requests, reckoned for %d epochs", epochs), old.text(), repaired.text(), saved(old, repaired)}}
	_, err := fmt.Fprintf(w, "%s\n%s%s\n", t, story(before, after, r), reports(out))
	return err
}

// story is the comparison in words, for those who read one sentence. It claims nothing that these two runs did not measure.
func story(before, after run, r repair) string {
	b, a := before.result, after.result
	faster, worked, works := ratio(b.Job.StepsPerSecond, a.Job.StepsPerSecond), percent(sm(b)), percent(sm(a))
	if faster == "" || worked == unknown || works == unknown {
		return ""
	}
	s := fmt.Sprintf("The GPU was allocated all the time and worked %s of it, for it waited for data. Packing the catalogue\n"+
		"into shards once took %.1f s and %s of the requests above. Fed from shards, 4 batches ahead, the same GPU\n"+
		"works %s and makes %s the steps.", worked, r.took.Seconds(), grouped(r.requests), works, faster)
	if b.Baseline != nil && b.Baseline.Conclusion == "input-pipeline" {
		s += " A second GPU, bought before, would have waited as well."
	}
	return s + "\n\n"
}

func reports(out string) string {
	return "Reports: " + filepath.Join(out, "before", "report.html") + " and " + filepath.Join(out, "after", "report.html")
}

// table is lines of a label and three right-aligned cells; an empty line is a rule.
type table [][]string

func (t table) String() string {
	var width [4]int
	for _, line := range t {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range t {
		if len(line) == 0 {
			b.WriteString(strings.Repeat("─", width[0]+width[1]+width[2]+width[3]+9) + "\n")
			continue
		}
		text := fmt.Sprintf("%-*s   %*s   %*s   %*s", width[0], line[0], width[1], line[1], width[2], line[2], width[3], line[3])
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}

// sm returns the SM activity of the only GPU.
func sm(r *analysis.Result) analysis.Est {
	if len(r.GPUs) == 0 {
		return analysis.Est{}
	}
	return r.GPUs[0].SMActiveRatio
}

func cached(r *analysis.Result) analysis.Leg {
	if r.Baseline == nil {
		return analysis.Leg{}
	}
	return r.Baseline.Legs["host-cached"]
}

// count is a number of requests that may be unknown.
type count struct {
	n     float64
	known bool
}

func (c count) text() string {
	if !c.known {
		return unknown
	}
	return grouped(int64(math.Round(c.n)))
}

// grouped writes a whole number with a comma between groups of three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// perBatch returns how many requests a batch takes: as its builders counted them, or as many as the store served for each
// batch delivered, which counts those ahead of the training as well.
func perBatch(r run) (float64, bool) {
	delivered := 0
	for _, loader := range r.result.Loaders {
		if n, ok := loader.Requests.Get(); ok {
			return n, true
		}
		delivered += loader.Fetches
	}
	return float64(r.requests) / float64(max(delivered, 1)), delivered > 0
}

// overEpochs reckons the requests of a training of several epochs. The old way asks for every object in every epoch, two per
// product; the repaired one asks once while preprocessing, and for each shard once, which its run has done.
func overEpochs(before, after run, r repair) (old, repaired count) {
	n, ok := perBatch(before)
	if !ok {
		return
	}
	old = count{n * products / batch * epochs, true}
	repaired = count{float64(r.requests + after.requests), true}
	return old, repaired
}

func saved(old, repaired count) string {
	if !old.known || old.n == 0 {
		return ""
	}
	return fmt.Sprintf("−%.0f %%", 100*(1-repaired.n/old.n))
}

// unknown stands where a number is missing.
const unknown = "unknown"

func percent(e analysis.Est) string {
	v, ok := e.Get()
	switch {
	case ok && v.Value < 0.0995: // a small share keeps a digit behind the point: 1.3 % is not 1 %
		return fmt.Sprintf("%.1f %%", 100*v.Value)
	case ok:
		return fmt.Sprintf("%.0f %%", 100*v.Value)
	}
	return unknown
}

func millis(e analysis.Est) string {
	if v, ok := e.Get(); ok {
		return fmt.Sprintf("%.1f ms", 1000*v.Value)
	}
	return unknown
}

func number(e analysis.Est) string {
	if v, ok := e.Get(); ok {
		return fmt.Sprintf("%.1f", v.Value)
	}
	return unknown
}

func ratio(before, after analysis.Est) string {
	b, okB := before.Get()
	a, okA := after.Get()
	if !okB || !okA || b.Value == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f×", a.Value/b.Value)
}

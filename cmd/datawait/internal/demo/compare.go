package demo

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/report"
)

// repair is what preprocessing once took.
type repair struct {
	requests int64
	took     time.Duration
}

// epochs is the length of training over which requests are compared: preprocessing pays once, the old way pays every epoch.
const epochs = 10

// applied is what the repair does: it decodes and joins once, packs into shards, keeps them in a local folder, and asks further ahead.
var applied = []string{fixes.PreprocessOnce, fixes.ShardFiles, fixes.NVMeCache, fixes.PrefetchFactor}

// end sets both runs side by side, as `datawait compare` does, writes that beside their reports, and says what it means.
func (o Options) end(before, after run, r repair) error {
	c := compare.Run(compare.Input{Path: filepath.Join(o.Out, "before"), Result: before.result},
		compare.Input{Path: filepath.Join(o.Out, "after"), Result: after.result},
		compare.Options{Version: before.result.Version, Epochs: epochs, Applied: applied})
	_, werr := reports.WriteComparison(c, o.Out, []report.Format{report.HTML, report.Markdown, report.JSON})
	o.Screen.Brief = true
	if err := report.CompareTerminal(o.Stdout, c, o.Screen); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.Stdout, "%s%s\n", story(before, after, r), o.files())
	if werr != nil {
		return werr
	}
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
		"into shards once took %.1f s and %s requests. Fed from shards, 4 batches ahead, the same GPU works %s\n"+
		"and makes %s the steps.", worked, r.took.Seconds(), grouped(r.requests), works, faster)
	if old, repaired, ok := overEpochs(before, after, r); ok {
		s += fmt.Sprintf(" Over %d epochs the store is asked %s times instead of %s, packing included.", epochs, grouped(repaired), grouped(old))
	}
	if b.Baseline != nil && b.Baseline.Conclusion == "input-pipeline" {
		s += "\nA second GPU, bought before, would have waited as well."
	}
	return s + "\n\n"
}

// files says where to read on.
func (o Options) files() string {
	return "Reports: " + filepath.Join(o.Out, "before", "report.html") + " and " + filepath.Join(o.Out, "after", "report.html") +
		", side by side in " + filepath.Join(o.Out, "compare.html")
}

// sm returns the SM activity of the only GPU.
func sm(r *analysis.Result) analysis.Est {
	e, _ := r.SMActivity()
	return e
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
func overEpochs(before, after run, r repair) (old, repaired int64, ok bool) {
	n, ok := perBatch(before)
	return int64(math.Round(n * products / batch * epochs)), r.requests + after.requests, ok
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

func ratio(before, after analysis.Est) string {
	b, okB := before.Get()
	a, okA := after.Get()
	if !okB || !okA || b.Value == 0 {
		return ""
	}
	return strings.Replace(fmt.Sprintf("%.1f×", a.Value/b.Value), ".0×", "×", 1)
}

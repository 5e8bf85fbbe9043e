package demo

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/datawait/datawait/analysis"
)

// repair is what preprocessing once took.
type repair struct {
	requests int64
	took     time.Duration
}

// epochs is the length of training over which requests are compared: preprocessing pays once, the old way pays every epoch.
const epochs = 10

// compare prints both runs side by side.
func compare(w io.Writer, before, after run, r repair, out string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	line := func(cells ...string) {
		for _, cell := range cells {
			fmt.Fprint(t, cell, "\t")
		}
		fmt.Fprintln(t)
	}
	b, a := before.result, after.result
	line("EMULATED GPU", "before", "after", "")
	line("SM activity", percent(sm(b)), percent(sm(a)), "")
	line("waiting for data, of a step", percent(b.Step.DataWaitShare), percent(a.Step.DataWaitShare), "")
	line("a step", millis(b.Step.MeanSeconds), millis(a.Step.MeanSeconds), "")
	line("steps per second", number(b.Job.StepsPerSecond), number(a.Job.StepsPerSecond), ratio(b.Job.StepsPerSecond, a.Job.StepsPerSecond))
	line("cached-data test: a step", millis(cached(b).StepSeconds), millis(cached(a).StepSeconds), "")
	line("cached-data test: SM activity", percent(cached(b).SMActiveRatio), percent(cached(a).SMActiveRatio), "")
	line("store requests per 1000 batches", perThousand(before), perThousand(after), "")
	old, repaired := overEpochs(before, after, r)
	line(fmt.Sprintf("store requests over %d epochs", epochs), old.text(), repaired.text(), saved(old, repaired))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe last line includes the %d requests of preprocessing once (%.1f s); it is reckoned from the requests counted in these runs.\n",
		r.requests, r.took.Seconds())
	_, err := fmt.Fprintf(w, "Reports: %s and %s\n", filepath.Join(out, "before", "report.html"), filepath.Join(out, "after", "report.html"))
	return err
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
		return "unknown"
	}
	return fmt.Sprintf("%.0f", c.n)
}

// batches returns how many batches the loader of a run delivered.
func batches(r run) float64 {
	total := 0
	for _, loader := range r.result.Loaders {
		total += loader.Fetches
	}
	return float64(total)
}

func perThousand(r run) string {
	if batches(r) == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f", 1000*float64(r.requests)/batches(r))
}

// overEpochs reckons the requests of a training of several epochs. The old way asks for every object in every epoch, two per
// product; the repaired one asks once while preprocessing, and for each shard once, which its run has done.
func overEpochs(before, after run, r repair) (old, repaired count) {
	if batches(before) == 0 {
		return
	}
	perBatch := float64(before.requests) / batches(before)
	old = count{perBatch * products / batch * epochs, true}
	repaired = count{float64(r.requests + after.requests), true}
	return old, repaired
}

func saved(old, repaired count) string {
	if !old.known || old.n == 0 {
		return ""
	}
	return fmt.Sprintf("−%.0f %%", 100*(1-repaired.n/old.n))
}

func percent(e analysis.Est) string {
	if v, ok := e.Get(); ok {
		return fmt.Sprintf("%.0f %%", 100*v.Value)
	}
	return "unknown"
}

func millis(e analysis.Est) string {
	if v, ok := e.Get(); ok {
		return fmt.Sprintf("%.1f ms", 1000*v.Value)
	}
	return "unknown"
}

func number(e analysis.Est) string {
	if v, ok := e.Get(); ok {
		return fmt.Sprintf("%.1f", v.Value)
	}
	return "unknown"
}

func ratio(before, after analysis.Est) string {
	b, okB := before.Get()
	a, okA := after.Get()
	if !okB || !okA || b.Value == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f×", a.Value/b.Value)
}

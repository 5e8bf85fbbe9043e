package view

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func TestWillNotHelpStaysShort(t *testing.T) {
	var r analysis.Result
	for _, x := range [][2]string{{"a", "one"}, {"b", "two"}, {"c", "one"}, {"d", "three"}, {"e", "four"}, {"f", "five"}, {"g", "one"}, {"h", "six"}} {
		r.NoHelp = append(r.NoHelp, analysis.NoHelp{ID: x[0], Title: x[0], Reason: x[1]})
	}
	got := strings.Join(inShort(noHelp(&r)), " · ")
	if want := "a, c, g (one) · b (two) · d (three) · e (four) · and 2 more"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func estOf(value, low, high float64) analysis.Est {
	return unit.Some(stat.Estimate{Value: value, Low: low, High: high, N: 90, Grade: stat.GradeC, Source: "model"})
}

// A fix that may win nothing keeps its effort and bears a mark; the plan is told by titles, also where the table has none.
func TestMarksAndPlan(t *testing.T) {
	r := &analysis.Result{}
	r.Model.Trusted = true
	r.Step.MeanSeconds = estOf(0.0912, 0.0893, 0.0931)
	fix := func(position int, title string, low float64) analysis.Fix {
		return analysis.Fix{ID: title, Position: position, Title: title, Effort: "one argument",
			Predicted: analysis.Prediction{StepSeconds: estOf(0.03, 0.029, 0.09), StepSavedShare: estOf(0.6, low, 0.7)}}
	}
	r.Fixes = []analysis.Fix{fix(1, "certain", 0.1), fix(2, "doubtful", -0.01)}
	r.Plan = []analysis.PlanStep{{ID: "certain", Title: "certain", StepSeconds: 0.03}, {ID: "compile", Title: "torch.compile", StepSeconds: 0.02}, {ID: "doubtful", StepSeconds: 0.01}}
	f := fixes(r)
	if f.Rows[0].Mark != "" || f.Rows[1].Mark != nbsp+mark || f.Rows[1].Effort != "one argument" {
		t.Errorf("%+v", f.Rows)
	}
	if len(f.Notes) != 1 || !strings.HasPrefix(f.Notes[0], mark) {
		t.Errorf("notes %q", f.Notes)
	}
	want := "certain (91.2 → 30.0 ms), then torch.compile (30.0 → 20.0 ms), then doubtful (20.0 → 10.0 ms)."
	if got := strings.ReplaceAll(f.Plan, nbsp, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A ticket names each recipe once, with the fixes it is for, and its folder at the first.
func TestRecipesAreNamedOnce(t *testing.T) {
	rows := []Fix{{Position: "1", Recipe: "a/b/x.py"}, {Position: "2"}, {Position: "3", Recipe: "a/b/y.py"}, {Position: "4", Recipe: "a/b/x.py"}}
	if got, want := Recipes(rows), "a/b/x.py (1, 4), y.py (3)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Recipes(rows[1:2]); got != "" {
		t.Errorf("%q where no fix has a recipe", got)
	}
}

// Where the time of a whole build is not known its parts bring their unit along.
func TestBatchOfUnknownLength(t *testing.T) {
	l := analysis.Loader{OffCPUSeconds: unit.Some(0.0301), CPUSeconds: unit.Some(0.0001), RunQueueSeconds: unit.None[float64]("not counted"),
		BuildSeconds: unit.None[stat.Estimate]("no batch was seen being built"),
		Arguments:    map[string]json.RawMessage{"num_workers": json.RawMessage("0"), "shuffle": json.RawMessage("null")}}
	a := batch(&analysis.Result{Loaders: []analysis.Loader{l}}, l)
	if got := strings.ReplaceAll(a.Parts[0].Text+", "+a.Parts[1].Text+", "+a.Parts[2].Text, nbsp, " "); got != "30.1 ms, 0.1 ms, unknown" {
		t.Errorf("parts: %s", got)
	}
	if got := arguments(l); got != "num_workers=0" {
		t.Errorf("arguments: %s", got)
	}
}

// Without a device clock what is not waiting is work, not a riddle.
func TestWhatIsNotWaiting(t *testing.T) {
	r := &analysis.Result{}
	r.Step.MeanSeconds = estOf(0.08, 0.079, 0.081)
	r.Step.Anatomy = []analysis.Part{{Name: "data_wait", Seconds: 0.05, Share: 0.625}, {Name: "unexplained", Seconds: 0.03, Share: 0.375}}
	if got := step(r).Parts[1].Name; got != "computing and all else" {
		t.Errorf("without a clock: %s", got)
	}
	r.Step.Anatomy[0].Name = "exposed_wait"
	if got := step(r).Parts[1].Name; got != "unexplained" {
		t.Errorf("with a clock: %s", got)
	}
}

package view

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/unit"
)

func est(value, low, high float64) analysis.Est {
	return unit.Some(stat.Estimate{Value: value, Low: low, High: high, N: 14, Grade: stat.GradeB, Source: "hook clock"})
}

// A missing value is words, with the reason it was given, whatever kind of missing it is.
func TestMissingQuantities(t *testing.T) {
	for _, c := range []struct {
		m    analysis.Ratio
		want string
	}{
		{unit.None[float64]("no GPU was sampled."), "unknown: no GPU was sampled"}, {unit.NotSupported[float64]("not on a MIG slice"), "not supported: not on a MIG slice"},
		{unit.Broken[float64]("NVML stopped"), "failed: NVML stopped"}, {analysis.Ratio{}, "unknown: not measured"},
	} {
		q := share(c.m)
		if q.Known || q.Words() != c.want || q.Value != 0 || q.WithRange() == "" {
			t.Errorf("got %q, want %q", q.Words(), c.want)
		}
	}
	if q := share(unit.Some(0.0)); !q.Known || spaced(q.Text) != "0_%" {
		t.Errorf("a measured zero is a zero: got %q", q.Text)
	}
}

func TestEstimateCarriesItsProof(t *testing.T) {
	q := estimate(est(0.636, 0.627, 0.645), percentStyle)
	if want := "95_% interval 62–65_%, n = 14, grade B, hook clock"; spaced(q.Proof) != want {
		t.Errorf("got %q, want %q", spaced(q.Proof), want)
	}
	for _, odd := range []analysis.Est{est(0.5, 0.6, 0.7), est(0.5, 0.5, 0.5)} {
		if q := estimate(odd, percentStyle); q.Range != "" {
			t.Errorf("bounds that do not hold the value, or no more than it, are no interval: got %q", q.Range)
		}
	}
}

// Every verdict there is has a headline of its own, or that of waiting for data.
func TestEveryVerdictHasALead(t *testing.T) {
	for _, id := range verdict.IDs() {
		if leads[id] == "" && !dataFindings[id] {
			t.Errorf("no words for a headline about %s", id)
		}
	}
}

func TestLeadTellsASmallWait(t *testing.T) {
	r := &analysis.Result{Verdicts: []analysis.Verdict{{ID: "too-few-workers"}}}
	for share, want := range map[float64]string{0.048: "A small wait for data", 0.0999: "A small wait for data", 0.1: "Waiting for data"} {
		r.Step.ExposedWaitShare = est(share, share, share)
		if got := headline(r).Lead; got != want {
			t.Errorf("%v of a step: got %q, want %q", share, got, want)
		}
	}
}

// SM activity that was measured in a small part of the time is said to be of that part.
func TestTheHeadlineSaysOfWhatTimeActivityIs(t *testing.T) {
	for covered, want := range map[float64]string{0.96: "works 42 % (grade\u00a0A) of the time it is allocated.",
		0.39: "works 42 % (grade\u00a0A) of the 39 % of the time it is allocated in which that was measured."} {
		sm := unit.Some(stat.Estimate{Value: 0.42, Low: 0.42, High: 0.42, N: 50, Grade: stat.GradeA})
		r := &analysis.Result{GPUs: []analysis.GPU{{SMActiveRatio: sm}}, Ladder: []analysis.Rung{{Name: "sm_active", Coverage: unit.Some(covered)}}}
		if got := strings.ReplaceAll(sizes(r, withDoubt), aside, ""); !strings.Contains(got, want) {
			t.Errorf("covered %v: %q, want %q", covered, got, want)
		}
	}
}

// What a slice's engine counter says is not called GPU-util.
func TestTheResidentRungIsCalledWhatItIs(t *testing.T) {
	of := func(source string) analysis.GPU {
		return analysis.GPU{ResidentRatio: unit.Some(0.6), Ladder: []analysis.Rung{{Name: "resident", Source: source}}}
	}
	util, engine := of("dcgm"), of("dcgm, "+analysis.EngineSource)
	for want, gpus := range map[string][]analysis.GPU{"what GPU-util shows": {util, util}, "what the graphics engine's counter shows": {engine},
		"what GPU-util or the graphics engine's counter shows": {util, engine}} {
		if got := ladder(&analysis.Result{GPUs: gpus}).Rungs[2].Note; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpeedSaysWhenNothingDiffers(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      bool
	}{{0.99, 1.03, true}, {1.001, 1.03, false}, {1, 1.03, true}, {0.9, 1, true}} {
		got := speed(est((c.low+c.high)/2, c.low, c.high))
		if strings.Contains(got, "no meaningful difference") != c.want {
			t.Errorf("%v to %v: got %q", c.low, c.high, got)
		}
	}
}

// The job's share is that of its GPUs by how long each was allocated, and as weak as the weakest.
func TestOverGPUs(t *testing.T) {
	gpu := func(ns int64, sm analysis.Est) analysis.GPU { return analysis.GPU{AllocatedNS: ns, SMActiveRatio: sm} }
	strong := unit.Some(stat.Estimate{Value: 0.9, Low: 0.8, High: 1, N: 5, Grade: stat.GradeA, Source: "DCGM"})
	weak := unit.Some(stat.Estimate{Value: 0.1, Low: 0, High: 0.2, N: 7, Grade: stat.GradeC, Source: "NVML"})
	e, covered := analysis.OverGPUs([]analysis.GPU{gpu(3, strong), gpu(1, weak), gpu(9, unit.None[stat.Estimate]("lost"))}, func(g analysis.GPU) analysis.Est { return g.SMActiveRatio })
	got, ok := e.Get()
	if want := (stat.Estimate{Value: 0.7, Low: 0.6, High: 0.8, N: 12, Grade: stat.GradeC, Source: "several sources"}); !ok || covered != 2 || !near(got, want) {
		t.Errorf("got %+v over %d, want %+v over 2", got, covered, want)
	}
	if e, _ := analysis.OverGPUs([]analysis.GPU{gpu(9, unit.Broken[stat.Estimate]("lost"))}, func(g analysis.GPU) analysis.Est { return g.SMActiveRatio }); e.State() != unit.Failed || e.Why() != "lost" {
		t.Errorf("where no GPU knows, the first says why: got %v %q", e.State(), e.Why())
	}
}

func near(a, b stat.Estimate) bool {
	d := func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 }
	return d(a.Value, b.Value) && d(a.Low, b.Low) && d(a.High, b.High) && a.N == b.N && a.Grade == b.Grade && a.Source == b.Source
}

func TestChange(t *testing.T) {
	for x, want := range map[float64]string{0.91: "−91_%", 0: "0_%", -0.05: "+5_%", 0.004: "<1_%", 1: "−100_%", 0.996: "−99_%"} {
		if got := spaced(change(unit.Some(x)).Text); got != want {
			t.Errorf("change(%v): got %s, want %s", x, got, want)
		}
	}
}

// A column that says one thing in every row becomes a note; numbers stay, and so does a table of one row.
func TestTidy(t *testing.T) {
	table := Table{Columns: []Column{{"rank", false}, {"host", false}, {"steps", true}}, Rows: [][]Cell{
		{textCell("0"), textCell("node-a"), textCell("9")}, {textCell("1"), textCell("node-a"), textCell("9")},
	}}
	got := table.tidy()
	if len(got.Columns) != 2 || len(got.Rows[1]) != 2 || got.Notes[0] != "In every row: host node-a." {
		t.Errorf("got %+v", got)
	}
	long := Table{Columns: []Column{{"rank", false}}}
	for i := range maxRows + 1 {
		long.Rows = append(long.Rows, []Cell{textCell(count(i))})
	}
	if got := long.tidy(); len(got.Rows) != maxRows || len(got.Notes) != 1 {
		t.Errorf("a long table: %d rows, notes %v", len(got.Rows), got.Notes)
	}
}

// Whatever could not be read is told; what leaves a hole in the numbers already on the first screen.
func TestDamageIsTold(t *testing.T) {
	for i := range reflect.TypeFor[analysis.DamageReport]().NumField() {
		var r analysis.Result
		field := reflect.ValueOf(&r.Quality.Damage).Elem().Field(i)
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int:
			field.SetInt(3)
		default:
			field.SetUint(3)
		}
		name := reflect.TypeFor[analysis.DamageReport]().Field(i).Name
		if text := damage(r.Quality.Damage); strings.HasPrefix(text, "None") || name != "Unfinished" && !strings.Contains(text, "3") {
			t.Errorf("%s: %q", name, text)
		}
		banner := ""
		for _, b := range banners(&r) {
			banner += b.Kind + " "
		}
		hole := name == "BadFiles" || name == "BadFrames" || name == "Undeclared" || name == "TornTails"
		if hole != strings.Contains(banner, "damaged") {
			t.Errorf("%s: banners %q", name, banner)
		}
	}
	if text := damage(analysis.DamageReport{TornTails: 1, Lost: 37, Unfinished: true}); spaced(text) != "1_torn tail, 37_lost records. The recording was not finished." {
		t.Errorf("got %q", text)
	}
	if text := unread(analysis.DamageReport{TornTails: 1, Unfinished: true}); text != "" {
		t.Errorf("a recording cut short: %q", text)
	}
}

// Of a watched loader that nobody described, no number of workers is shown, and nobody is said to build its batches.
func TestUnseenBuildersAreUnknown(t *testing.T) {
	l := analysis.Loader{Kind: "watch", Arguments: map[string]json.RawMessage{"num_workers": json.RawMessage("null")}}
	r := &analysis.Result{Loaders: []analysis.Loader{l}}
	if notes := batchNotes(r, l); notes[0] != "who builds it was not seen" {
		t.Errorf("built by: %q", notes[0])
	}
	if cell := loaders(r).Rows[0][3]; cell.Text != "unknown" {
		t.Errorf("workers: %q", cell.Text)
	}
	l.Arguments["num_workers"] = json.RawMessage("0")
	if notes := batchNotes(r, l); notes[0] != "built in the training process" {
		t.Errorf("without workers it is built by: %q", notes[0])
	}
}

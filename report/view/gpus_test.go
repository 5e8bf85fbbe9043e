package view

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// halfAnHour is a GPU for half an hour at 4 an hour, SM activity 0.3; its tensor activity was not read.
func halfAnHour(price analysis.Ratio) *analysis.Result {
	none := unit.None[float64]("tensor activity was not read")
	cost := func(hours float64) analysis.Ratio {
		if p, ok := price.Get(); ok {
			return unit.Some(hours * p)
		}
		return price
	}
	a, b := unit.Some(stat.GradeA), unit.Some(stat.GradeB)
	ladder := []analysis.Rung{
		{Name: "allocated", Ratio: unit.Some(1.0), GPUHours: unit.Some(0.5), Cost: cost(0.5), Grade: a, Coverage: unit.Some(1.0), Source: "dcgm"},
		{Name: "held", Ratio: unit.Some(0.9), GPUHours: unit.Some(0.45), Cost: cost(0.45), Grade: b, Coverage: unit.Some(1.0), Source: "processes"},
		{Name: "sm_active", Ratio: unit.Some(0.3), GPUHours: unit.Some(0.15), Cost: cost(0.15), Grade: a, Coverage: unit.Some(0.75), Source: "dcgm"},
		{Name: "tensor_active", Ratio: none, GPUHours: none, Cost: none, Grade: unit.None[stat.Grade](""), Coverage: unit.Some(0.0)},
	}
	return &analysis.Result{Ladder: ladder, HourCost: price, GPUs: []analysis.GPU{{UUID: "GPU-12345678-9", AllocatedNS: 1800e9, Coverage: unit.Some(0.75), Ladder: ladder}}}
}

func plainText(s string) string { return strings.ReplaceAll(s, nbsp, " ") }

func TestTheLadderInHoursAndMoney(t *testing.T) {
	g := gpusOf(halfAnHour(unit.Some(4.0)))
	if got, want := plainText(g.Hours), "GPU-minutes: allocated 30.0 · held 27.0 · SM active 9.0 · tensor unknown"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := g.Money, "Money, at 4.00 a GPU-hour: the allocated time cost 2.00, of which 0.60 bought SM activity (grade A) and 1.40 time without it."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	row := g.Table.Rows[0]
	if got := plainText(row[1].Text + ", " + row[3].Text + ", " + row[4].Text + ", " + row[5].Text); got != "90 % B, 30 % A, unknown, 75 %" || !strings.Contains(plainText(row[3].Why), "measured in 75 % of the time") {
		t.Errorf("%s (%s)", got, row[3].Why)
	}
}

// Without a price there is no word of money, and where SM activity is unknown no sum is made up of the rest.
func TestMoneyIsSaidWhereItIsKnown(t *testing.T) {
	free := gpusOf(halfAnHour(unit.None[float64]("no price")))
	if free.Money != "" || strings.Contains(columnHeads(free.Rungs), "money") {
		t.Errorf("%q, %s", free.Money, columnHeads(free.Rungs))
	}
	r := halfAnHour(unit.Some(4.0))
	r.Ladder[2].Cost = unit.None[float64]("the counters contradict themselves")
	if got, want := gpusOf(r).Money, "Money, at 4.00 a GPU-hour: the allocated time cost 2.00; how much of that the GPUs' processors worked for is unknown: the counters contradict themselves."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func columnHeads(t Table) string {
	var heads []string
	for _, c := range t.Columns {
		heads = append(heads, c.Head)
	}
	return strings.Join(heads, " ")
}

// What a driver reports of GPUs is told once for all of which it is true, and not below the lines.
func TestWhatDriversReportIsTold(t *testing.T) {
	hot := analysis.GPU{UUID: "GPU-aaaaaaaa-1", State: analysis.DeviceState{Thermal: unit.Some(0.5), PowerCap: unit.Some(0.04), Clock: unit.Some(1.2e9), ClockMax: unit.Some(1.41e9)},
		Events: []analysis.DeviceEvent{{Name: "xid", Xid: unit.Some(79), Count: 1, Seconds: 75}, {Name: "counters-began-anew", Count: 1}}, Untrusted: unit.Some(0.25)}
	other := hot
	other.UUID, other.Events = "GPU-bbbbbbbb-1", nil
	got := plainText(strings.Join(gpusOf(&analysis.Result{GPUs: []analysis.GPU{hot, other}}).Notes, "\n"))
	want := `GPU-aaaaaaaa: the driver reported an error (Xid 79), 75.0 s into the run.
GPU-aaaaaaaa and 1 other: the clock was held down by temperature for 50 % of the time it worked, on average at 1.20 of 1.41 GHz.
GPU-aaaaaaaa and 1 other: 25 % of its counter windows contradict themselves and count for nothing; they are not idleness.`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	hot.State.Clock = unit.Some(1.41e9)
	if notes := gpuNotes(hot); !strings.Contains(strings.Join(notes, "\n"), "the driver said that the clock was held down by temperature, yet it was at its highest, for 50") {
		t.Errorf("a clock at its highest: %q", notes)
	}
	over := analysis.GPU{Ladder: []analysis.Rung{{Name: "resident", Ratio: unit.Some(0.1)}, {Name: "sm_active", Ratio: unit.Some(0.5)}}}
	if notes := gpuNotes(over); len(notes) != 1 || !strings.HasPrefix(plainText(notes[0]), "SM active reads 50 % and resident 10 %, which cannot be of one time") {
		t.Errorf("a ladder that is turned over: %q", notes)
	}
	whole := analysis.DeviceState{LinkGen: unit.Some(4), LinkWidth: unit.Some(16), LinkGenMost: unit.Some(4), LinkWidthMost: unit.Some(16)}
	if notes := gpuNotes(analysis.GPU{State: whole, Shared: unit.Some("no")}); len(notes) > 0 {
		t.Errorf("nothing is wrong, and yet %q", notes)
	}
}

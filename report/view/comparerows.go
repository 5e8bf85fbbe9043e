package view

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// rowWords are the names of rows. Those of accounts and of a step's parts are among the words of accounts.
var rowWords = map[string]string{
	compare.RowSM:            "SM activity, allocated",
	compare.RowLiveSM:        "SM activity, live",
	compare.RowWait:          "data wait",
	compare.RowExposed:       "exposed wait",
	compare.RowStep:          "a step",
	compare.RowCached:        "a step, cached batches",
	compare.RowSamples:       "samples per s and rank",
	compare.RowEpochStart:    "epoch start",
	compare.RowEpoch:         "an epoch",
	compare.RowEpochGPUHours: "GPU time of an epoch",
	compare.RowEpochCost:     "cost of an epoch",
	compare.RowRun:           "the run",
	compare.RowRunGPUHours:   "GPU time of the run",
	compare.RowRunCost:       "cost of the run",
	compare.RowRequests:      "requests",
	compare.RowFiles:         "files opened",
	compare.RowBytes:         "bytes read",
	"build_seconds":          "build time",
	"cpu_seconds":            "CPU",
	"off_cpu_seconds":        "off-CPU",
	"run_queue_seconds":      "run queue",
	"handoff_seconds":        "hand-off",
	"requests":               "requests",
	"files":                  "files opened",
	"bytes":                  "bytes read",
}

// reckoned are the rows that are of a whole run; where the reader said how many epochs it has, their names say so.
var reckoned = []string{compare.RowRun, compare.RowRunGPUHours, compare.RowRunCost}

func rowTitle(c *compare.Comparison, id string) string {
	s, ok := rowWords[id]
	if n, given := c.Epochs.Get(); given && slices.Contains(reckoned, id) {
		s = strings.Replace(s, "the run", plural(n, "epoch"), 1)
	}
	if !ok {
		return accountName(id)
	}
	return s
}

// outcomeWords are the words for what a row comes to.
var outcomeWords = map[compare.Outcome]string{
	compare.Better: "better", compare.Worse: "worse", compare.Same: "no meaningful difference", compare.NotComparable: "not comparable", compare.Unknown: "unknown",
}

// shortOutcome are the same below a head that says "difference".
var shortOutcome = map[compare.Outcome]string{
	compare.Better: "better", compare.Worse: "worse", compare.Same: "not meaningful", compare.NotComparable: "not comparable", compare.Unknown: "unknown",
}

// groups are the parts of the table.
var groups = []struct {
	name string
	ids  []string
}{
	{"What the GPUs did", []string{compare.RowSM, compare.RowLiveSM}},
	{"A step", []string{compare.RowStep, compare.RowCached, compare.RowWait, compare.RowExposed, compare.RowSamples}},
	{"An epoch and a run", []string{compare.RowEpochStart, compare.RowEpoch, compare.RowEpochGPUHours, compare.RowEpochCost, compare.RowRun, compare.RowRunGPUHours, compare.RowRunCost}},
	{"Reading, per epoch", reading},
}

var reading = []string{compare.RowRequests, compare.RowFiles, compare.RowBytes}

func rowGroups(c *compare.Comparison) []RowGroup {
	var out []RowGroup
	for _, g := range groups {
		if x := group(c, g.name, c.Rows, g.ids); len(x.Rows) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// group makes the rows of a part of the table; nil ids are all. A row of which neither side is known is left to the list of what
// is not compared.
func group(c *compare.Comparison, name string, rows []compare.Row, ids []string) RowGroup {
	g := RowGroup{Name: name}
	if ids == nil {
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
	}
	for _, id := range ids {
		if r := rowIn(rows, id); r.Before.IsKnown() || r.After.IsKnown() {
			g.Rows = append(g.Rows, compareRow(c, r))
		}
	}
	return g
}

// compareRow puts a row into words.
func compareRow(c *compare.Comparison, r compare.Row) CompareRow {
	b, a := rowStyles(r)
	return CompareRow{ID: cleanName(r.ID), Name: rowTitle(c, r.ID), Before: estimate(r.Before, b), After: estimate(r.After, a), Change: rowChange(r),
		Grade: max(estimate(r.Before, b).Grade, estimate(r.After, a).Grade), Outcome: outcomeWords[r.Outcome], Short: shortOutcome[r.Outcome], Kind: string(r.Outcome), Why: clause(r.Why), Note: sentence(r.Note)}
}

// longScales are those of times that may be long: an epoch, a run.
var longScales = append(slices.Clone(timeScales), scale{"min", 60}, scale{"h", 3600})

// gpuScales are those of GPU time, in hours, where the row's name says that it is one.
var gpuScales = []scale{{"s", 1.0 / 3600}, {"min", 1.0 / 60}, {"h", 1}}

// countStyle writes counts, which are means, so that they need not be whole.
var countStyle = style{digitsAfter, func(x float64, d int) string {
	return grouped(x, d)
}, "", 1}

// grouped writes a number with commas between groups of three digits, where it has so many.
func grouped(x float64, digits int) string {
	switch size := math.Abs(x); {
	case size >= 1e15: // beyond what a whole number can be told from its neighbour
		return strconv.FormatFloat(x, 'g', 3, 64)
	case size >= 999.5:
		return count(int64(math.Round(x)))
	}
	return decimal(x, digits)
}

var moneyStyle = style{func(x float64) int { return max(2, digitsAfter(x)) }, decimal, "", 1}

// rowStyles are how the two numbers of a row are written: in one unit where that is readable.
func rowStyles(r compare.Row) (before, after style) {
	switch r.Unit {
	case "ratio":
		return percentStyle, percentStyle
	case "count", "per_second":
		return countStyle, countStyle
	case "money":
		return moneyStyle, moneyStyle
	case "bytes":
		return pairStyles(byteScales, r)
	case "gpu_hours":
		return pairStyles(gpuScales, r)
	}
	return pairStyles(longScales, r)
}

// farApart is the factor from which two numbers are written in units of their own.
const farApart = 1000

func pairStyles(table []scale, r compare.Row) (before, after style) {
	x, y := math.Abs(valueOf(r.Before)), math.Abs(valueOf(r.After))
	own := func(v float64) style { return freeStyle(pick(table, v)) }
	small, large := math.Min(x, y), math.Max(x, y)
	if small <= 0 || large > farApart*small {
		if x == 0 {
			x = y
		}
		if y == 0 {
			y = x
		}
		return own(x), own(y)
	}
	if st := pick(table, small); large/st.factor < 999.5 {
		return freeStyle(st), freeStyle(st)
	}
	return own(large), own(large)
}

func valueOf(m analysis.Est) float64 {
	e, ok := m.Get()
	if !ok || !finite(e.Value) {
		return 0
	}
	return e.Value
}

// freeStyle writes in one unit, each number with three digits.
func freeStyle(s scale) style {
	return style{func(x float64) int { return digitsAfter(x / s.factor) }, func(x float64, d int) string {
		return grouped(x/s.factor, d)
	}, nbsp + s.suffix, s.factor}
}

// rowChange is the difference of a row: of shares in points, of everything else in percent, or as a factor where it grew a lot.
func rowChange(r compare.Row) Quantity {
	switch {
	case !r.Outcome.Compared():
		return missing(unit.Unknown, r.Why)
	case valueOf(r.Before) == valueOf(r.After):
		return Quantity{Known: true, Text: "none", Number: "none"}
	case r.Unit == "ratio":
		return estimate(r.Difference, pointStyle)
	case r.Ratio.IsKnown():
		e, _ := r.Ratio.Get()
		if e.Value >= 2 {
			return estimate(r.Ratio, timesStyle)
		}
		e.Value, e.Low, e.High = e.Value-1, e.Low-1, e.High-1
		return estimate(someEst(e), signedStyle)
	}
	b, a := valueOf(r.Before), valueOf(r.After)
	if b > 0 && r.Before.IsKnown() && r.After.IsKnown() { // its interval reaches zero, so the change has none that could be shown
		return known(a/b-1, signedStyle)
	}
	return missing(unit.Unknown, "it was nothing before")
}

func someEst(e stat.Estimate) analysis.Est { return unit.Some(e) }

// pointStyle writes a difference of shares in percentage points, signedStyle a relative one in percent.
var (
	pointStyle  = style{percentDigit, signed, nbsp + "points", 0.01}
	signedStyle = style{percentDigit, signed, nbsp + "%", 0.01}
)

// signed writes a share as a percentage with its sign.
func signed(x float64, digits int) string {
	s := decimal(100*x, digits)
	switch {
	case x > -1 && strings.HasPrefix(s, minus+"100"): // less than all of it
		return minus + decimal(100-math.Pow10(-digits), digits)
	case x > 0 && !strings.HasPrefix(s, "<"):
		return "+" + s
	}
	return s
}

// accountGroup are the accounts in the order of the report.
func accountGroup(c *compare.Comparison) RowGroup {
	rows := slices.Clone(c.Accounts)
	slices.SortStableFunc(rows, func(x, y compare.Row) int { return accountRank(x.ID) - accountRank(y.ID) })
	return group(c, "Where the allocated time went", rows, nil)
}

// notCompared lists what is not known of both runs, those with one reason together.
func notCompared(c *compare.Comparison) []Gap {
	var out []Gap
	var named [][]string
	for _, r := range c.Rows {
		if r.Outcome != compare.Unknown { // what keeps known numbers from being compared stands above the table
			continue
		}
		title := rowTitle(c, r.ID)
		if slices.Contains(reading, r.ID) {
			title += " per epoch"
		}
		why := upper(sentence(orWords(r.Why, "not measured")))
		at := slices.IndexFunc(out, func(g Gap) bool { return g.Why == why })
		if at < 0 {
			out, named = append(out, Gap{Why: why}), append(named, nil)
			at = len(out) - 1
		}
		named[at] = append(named[at], title)
	}
	for i := range out {
		out[i].What = upper(strings.Join(named[i], ", "))
	}
	return out
}

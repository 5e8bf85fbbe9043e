package view

import (
	"math"
	"strconv"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Quantity is a number ready to be shown, or the words that stand where it is missing.
type Quantity struct {
	Known  bool
	Text   string // "26 %", or "unknown", "not supported", "failed"
	Why    string // why it is missing; "" for a known one
	Range  string // its 95 % interval, "24–28 %"; "" for a plain count or sum
	Grade  string // A, B or C; "" where no grade applies
	Proof  string // n, interval, grade and source in words, for a footnote or a hover text
	Number string // Text without its unit, for a column whose head names the unit; the words of a missing one
	Span   string // Range without its unit

	// Value, Low and High are for geometry (the length of a bar) and hold base units; all 0 for a missing one.
	Value, Low, High float64
}

// Words returns the text, and for a missing quantity the reason as well: "unknown: no GPU was sampled".
func (q Quantity) Words() string {
	if q.Known || q.Why == "" {
		return q.Text
	}
	return q.Text + ": " + q.Why
}

// WithRange returns the text with its interval in parentheses, where it has one: "26 % (24–28 %)".
func (q Quantity) WithRange() string {
	if q.Range == "" {
		return q.Text
	}
	return q.Text + " (" + q.Range + ")"
}

// style says how numbers of one family are written: the decimals that suit a value, the number itself, and its unit.
type style struct {
	digits func(float64) int
	number func(x float64, digits int) string
	unit   string  // "%", "ms", "×", with its space in front where it takes one
	factor float64 // base units in one shown unit
}

var percentStyle = style{percentDigit, bareNumber, nbsp + "%", 0.01}

// columnPercentStyle is for columns whose decimals stand below each other.
var columnPercentStyle = style{func(float64) int { return 1 }, bareNumber, nbsp + "%", 0.01}

// wholePercentStyle is for columns that align without decimals.
var wholePercentStyle = style{func(float64) int { return 0 }, bareNumber, nbsp + "%", 0.01}

var timesStyle = style{timesDigits, decimal, "×", 1}

// confidenceStyle writes a 0–1 belief with two decimals and no unit: it is no share of anything.
var confidenceStyle = style{func(float64) int { return 2 }, func(x float64, d int) string { return strconv.FormatFloat(x, 'f', d, 64) }, "", 1}

func bareNumber(x float64, digits int) string {
	return strings.TrimSuffix(percentDigits(x, digits), nbsp+"%")
}

// scaleStyle writes in the scale that suits v, so that several numbers beside it share one unit and its decimals.
func scaleStyle(table []scale, v float64) style {
	s := pick(table, v)
	digits := digitsAfter(v / s.factor)
	st := style{func(float64) int { return digits }, func(x float64, d int) string { return decimal(x/s.factor, d) }, "", s.factor}
	if s.suffix != "" {
		st.unit = nbsp + s.suffix
	}
	return st
}

// text writes one number with its unit.
func (st style) text(x float64) string { return st.number(x, st.digits(x)) + st.unit }

// span writes an interval with the decimals that suit the value it belongs to: "17.9–19.8". Its ends are rounded outward, so
// that it never looks narrower than it is. With a sign in it, a dash would be misread: "−0.3 to 1.2".
func (st style) span(value, low, high float64) string {
	d := st.digits(value)
	unit := st.factor / math.Pow10(d)
	a, b := st.number(outward(low, unit, math.Floor), d), st.number(outward(high, unit, math.Ceil), d)
	if low < 0 || strings.HasPrefix(a, "<") || strings.HasPrefix(a, ">") || strings.HasPrefix(a, "+") {
		return a + " to " + b
	}
	return a + "–" + b
}

// outward rounds to a whole number of units in one direction. What is a whole number but for the noise of floating point stays.
func outward(x, unit float64, to func(float64) float64) float64 {
	n := x / unit
	if near := math.Round(n); math.Abs(n-near) < 1e-6 {
		return near * unit
	}
	return to(n) * unit
}

// missing turns an absent value into words.
func missing(kind unit.Availability, why string) Quantity {
	text := "unknown"
	switch kind {
	case unit.Unsupported:
		text = "not supported"
	case unit.Failed:
		text = "failed"
	}
	why = clause(why)
	if why == "" {
		why = "not measured"
	}
	return Quantity{Text: text, Number: text, Why: why}
}

// known turns a number into a quantity; what is no number is missing.
func known(x float64, st style) Quantity {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return missing(unit.Failed, "the result is not a number")
	}
	return Quantity{Known: true, Text: st.text(x), Number: st.number(x, st.digits(x)), Value: x, Low: x, High: x}
}

// measured is a number that should be there; what is no number is missing.
func measured(x float64) analysis.Ratio {
	if !finite(x) {
		return unit.Broken[float64]("the result is not a number")
	}
	return unit.Some(x)
}

// ratio turns a plain number that may be missing into a quantity.
func ratio(m analysis.Ratio, st style) Quantity {
	x, ok := m.Get()
	if !ok {
		return missing(m.State(), m.Why())
	}
	return known(x, st)
}

// scaled turns a plain number into a quantity in the scale that suits it.
func scaled(m analysis.Ratio, table []scale) Quantity { return ratio(m, scaleStyle(table, m.Or(0))) }

// share turns a 0–1 number into a percentage.
func share(m analysis.Ratio) Quantity { return ratio(m, percentStyle) }

// estimate turns an estimate into a quantity with its interval, grade and source.
func estimate(m analysis.Est, st style) Quantity {
	e, ok := m.Get()
	if !ok {
		return missing(m.State(), m.Why())
	}
	q := known(e.Value, st)
	if !q.Known {
		return q
	}
	q.Grade = cleanName(string(e.Grade))
	if interval(e) {
		q.Low, q.High = e.Low, e.High
		q.Span = st.span(e.Value, e.Low, e.High)
		q.Range = q.Span + st.unit
	}
	q.Proof = proofOf(e, q.Range)
	return q
}

// interval reports whether an estimate has bounds that can be shown.
func interval(e stat.Estimate) bool {
	bad := math.IsNaN(e.Low) || math.IsNaN(e.High) || math.IsInf(e.Low, 0) || math.IsInf(e.High, 0)
	return !bad && e.Low <= e.Value && e.Value <= e.High && e.Low < e.High
}

func proofOf(e stat.Estimate, span string) string {
	var parts []string
	if span != "" {
		parts = append(parts, "95"+nbsp+"% interval "+span)
	}
	if e.N > 0 {
		parts = append(parts, "n = "+count(e.N))
	}
	if e.Grade != "" {
		parts = append(parts, "grade "+cleanName(string(e.Grade)))
	}
	if e.Source != "" {
		parts = append(parts, cleanName(e.Source))
	}
	return strings.Join(parts, ", ")
}

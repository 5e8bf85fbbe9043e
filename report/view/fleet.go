package view

import (
	"math"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/probe/unit"
)

// Fleet is what the GPUs of a cluster did, ready to be laid out.
type Fleet struct {
	Title    string // one plain line
	When     string // "2026-11-23 07:10 to 2026-11-30 07:10 UTC"
	Subject  []Phrase
	Banners  []Banner
	Headline Headline
	Proof    []string
	Jobs     []FleetJob // most lost first
	Bars     []Anatomy  // of the same jobs: where the allocated time of each went
	Priced   bool       // somebody said what a GPU-hour costs
	Slow     []string   // sentences about ranks that keep their jobs waiting
	Accounts []Account  // of all jobs whose books an agent kept
	Facts    []Fact     // about all GPUs together
	Remarks  []string
	Method   []Fact
	Terms    []Term
}

// FleetJob is one job in the ranking.
type FleetJob struct {
	Position  string
	Name      string // with its namespace in front
	Notes     []string
	GPUs      string
	Allocated Quantity
	Waiting   Quantity // its range is what it is at most
	Idle      Quantity
	Lost      Quantity
	Money     Quantity // of what is lost
	SM        Quantity
	Wait      Quantity // data wait, of the training loop
	Before    Quantity // lost in the window before
	Trend     string   // in words
	Kind      string   // better, worse, no-meaningful-difference, unknown or new
	Why       string   // it is not compared
}

// NewFleet builds the display model of a fleet. It never fails: whatever f lacks becomes words.
func NewFleet(f *fleet.Fleet) Fleet {
	v := Fleet{
		When:     fleetWhen(f),
		Subject:  fleetSubject(f),
		Banners:  fleetBanners(f),
		Headline: fleetHeadline(f),
		Proof:    fleetProof(f),
		Priced:   f.HourCost.IsKnown(),
		Slow:     slowRanks(f),
		Accounts: fleetAccounts(f.Total.Use),
		Facts:    fleetFacts(f),
		Method:   fleetMethod(f),
		Terms:    fleetTerms(),
	}
	for i, w := range f.Workloads[:min(maxRows, len(f.Workloads))] {
		v.Jobs = append(v.Jobs, fleetJob(i, w))
		v.Bars = append(v.Bars, fleetBar(w))
	}
	for _, s := range f.Remarks {
		v.Remarks = append(v.Remarks, upper(sentence(s)))
	}
	if n := len(f.Workloads); n > maxRows {
		v.Remarks = append(v.Remarks, "The first "+count(maxRows)+" of "+count(n)+" jobs are shown; the JSON document has them all.")
	}
	for _, s := range f.Warnings {
		v.Remarks = append(v.Remarks, "The server says: "+sentence(s))
	}
	v.Title = title(v.Headline)
	return v
}

// fleetHourStyle writes GPU-hours, which over days are many.
var fleetHourStyle = style{digitsAfter, grouped, nbsp + "GPU-h", 1}

// fleetMoneyStyle writes money, of which there may be a lot.
var fleetMoneyStyle = style{func(x float64) int {
	if math.Abs(x) >= 100 {
		return 0
	}
	return 2
}, grouped, "", 1}

func gpuHoursOf(m analysis.Ratio) Quantity { return ratio(m, fleetHourStyle) }

// amountOf is GPU-hours with their grade.
func amountOf(a fleet.Amount) Quantity {
	q := gpuHoursOf(a.Hours)
	if q.Known {
		q.Grade = cleanName(string(a.Grade))
		if q.Grade != "" {
			q.Proof = "grade " + q.Grade
		}
	}
	return q
}

// lostOf is what is lost as far as it is known.
func lostOf(u fleet.Use) Quantity {
	q := amountOf(u.Lost)
	if q.Known && u.Partial {
		q.Text, q.Number = "at least "+q.Text, "≥"+q.Number
	}
	return q
}

// waitingOf is what is lost to waiting for certain, with what it is at most beside it where that is more.
func waitingOf(u fleet.Use) Quantity {
	q, most := amountOf(u.Waiting), amountOf(u.AtMost)
	if q.Known && most.Known && most.Text != q.Text && most.Value > q.Value {
		q.Range, q.Span, q.High = "at most "+most.Text, "≤"+most.Number, most.Value
		q.Proof += ", at most grade " + most.Grade
		if u.Unasked.Or(0) > 0 {
			q.Range += " where a hook looked"
		}
	}
	return q
}

// smOf is SM activity; where it is not served, the upper bound that is.
func smOf(u fleet.Use) Quantity {
	q := share(u.SMActive)
	if q.Known {
		q.Grade, q.Number = cleanName(string(u.Working.Grade)), q.Text
		q.Proof = "grade " + q.Grade
		if r := share(u.SMRead); r.Known && r.Value < 0.95 {
			q.Proof += ", read in " + r.Text + " of the allocated time"
		}
		return q
	}
	if r := share(u.Resident); r.Known {
		r.Text, r.Number, r.Grade, r.Proof = "at most "+r.Text, "≤"+r.Text, "C", "grade C: SM activity is not served; so long some kernel was there"
		return r
	}
	return q
}

func fleetJob(i int, w fleet.Workload) FleetJob {
	j := FleetJob{
		Position: count(i + 1), Name: ownerName(w), Notes: jobNotes(w), GPUs: count(w.GPUs),
		Allocated: gpuHoursOf(w.Use.Allocated), Waiting: waitingOf(w.Use), Idle: amountOf(w.Use.Idle), Lost: lostOf(w.Use),
		Money: ratio(w.Use.Lost.Money, fleetMoneyStyle), SM: smOf(w.Use), Wait: share(w.Use.Wait), Kind: "unknown", Before: missing(unit.Unknown, ""),
	}
	if j.Money.Known && w.Use.Partial {
		j.Money.Text = "≥" + j.Money.Text
	}
	for _, s := range w.Shifts {
		if s.ID == fleet.ShiftLost {
			j.Before, j.Kind, j.Why = gpuHoursOf(s.Before), string(s.Outcome), clause(s.Why)
			j.Trend = trendWords(s)
		}
	}
	if j.Why == fleet.New {
		j.Kind = "new"
	}
	return j
}

// trendWords is a shift in words, with its size.
func trendWords(s fleet.Shift) string {
	d, known := s.Difference.Get()
	switch {
	case s.Why == fleet.New:
		return "new"
	case s.Outcome == fleet.Same:
		return "no meaningful difference"
	case !known || !finite(d) || s.Outcome == fleet.Unknown:
		return "unknown"
	case d > 0:
		return string(s.Outcome) + ", " + fleetHourStyle.text(d) + " more"
	}
	return string(s.Outcome) + ", " + fleetHourStyle.text(-d) + " less"
}

func ownerName(w fleet.Workload) string {
	name := cleanName(w.Job)
	switch {
	case w.Job == fleet.SharedJob:
		name = "shared GPUs"
	case name == "":
		name = "no job is known"
	}
	if w.Namespace != "" {
		return cleanName(w.Namespace) + "/" + name
	}
	return name
}

// maxHolders is how many holders of shared GPUs are named.
const maxHolders = 4

// jobNotes are what is to be known of a job before its numbers.
func jobNotes(w fleet.Workload) (out []string) {
	if w.Emulated {
		out = append(out, "emulated GPU")
	}
	switch hooked, known := w.Hooked.Get(); {
	case w.Source == fleet.Exporter:
		out = append(out, "by dcgm-exporter")
	case w.Job == fleet.SharedJob:
	case known && hooked == 0 && !w.Use.Waiting.Hours.IsKnown():
		out = append(out, "no hook")
	case known && hooked > 0 && hooked < w.GPUs:
		out = append(out, "hook on "+count(hooked)+" of "+plural(w.GPUs, "GPU"))
	}
	if len(w.Holders) > 0 {
		var names []string
		for _, h := range w.Holders[:min(maxHolders, len(w.Holders))] {
			names = append(names, cleanName(h))
		}
		s := "of " + strings.Join(names, ", ")
		if more := len(w.Holders) - maxHolders; more > 0 {
			s += " and " + count(more) + " more"
		}
		out = append(out, s)
	}
	if !w.Use.Allocated.IsKnown() {
		out = append(out, clause(w.Use.Allocated.Why()))
	}
	return out
}

// partWords are the names of parts of the allocated time.
var partWords = map[string]string{
	fleet.PartCompute: "computing", fleet.PartActive: "SM activity", fleet.PartWaiting: "waiting for data", fleet.PartBound: "perhaps waiting", fleet.PartIdle: "idle",
	fleet.PartOther: "other", fleet.PartUnknown: "not known",
}

// FleetParts are the parts of the allocated time in the order in which they are drawn.
func FleetParts() []string {
	return []string{fleet.PartCompute, fleet.PartActive, fleet.PartWaiting, fleet.PartBound, fleet.PartIdle, fleet.PartOther, fleet.PartUnknown}
}

// fleetBar is the allocated time of a job, cut into its parts.
func fleetBar(w fleet.Workload) Anatomy {
	a := Anatomy{Name: ownerName(w), Whole: gpuHoursOf(w.Use.Allocated), Unit: "GPU-h"}
	parts := slices.DeleteFunc(slices.Clone(w.Use.Parts), func(p fleet.Share) bool { return !finite(p.Hours) })
	values := make([]float64, len(parts))
	for i, p := range parts {
		values[i] = p.Hours
	}
	texts := apportion(values, a.Whole.Value, fixedDigits(a.Whole.Value))
	for i, p := range parts {
		q := known(p.Hours, fleetHourStyle)
		a.Parts = append(a.Parts, Part{ID: cleanName(p.ID), Name: partWords[p.ID], Text: texts[i], Value: q.Value, Known: q.Known, Share: known(p.Hours/max(a.Whole.Value, 1e-12), percentStyle)})
	}
	return a
}

// fixedDigits is fleetHourStyle with the decimals of one number for all.
func fixedDigits(x float64) style {
	st, d := fleetHourStyle, digitsAfter(x)
	st.digits = func(float64) int { return d }
	st.number = decimal
	return st
}

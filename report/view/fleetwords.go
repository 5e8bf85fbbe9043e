package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fleet"
)

func fleetWhen(f *fleet.Fleet) string {
	const layout = "2006-01-02 15:04"
	return f.Window.From.UTC().Format(layout) + " to " + f.Window.Until.UTC().Format(layout) + " UTC"
}

// lengthOf is how long a window is: "7 days", "36 hours".
func lengthOf(s fleet.Stretch) string {
	d := s.Until.Sub(s.From)
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return plural(int(d/(24*time.Hour)), "day")
	case d%time.Hour == 0:
		return plural(int(d/time.Hour), "hour")
	}
	return duration(d.Seconds())
}

func fleetSubject(f *fleet.Fleet) []Phrase {
	return []Phrase{{plural(f.Total.GPUs, "GPU"), false}, {plural(len(f.Workloads), "job"), false}, {cleanName(f.Server), true}}
}

func fleetBanners(f *fleet.Fleet) (out []Banner) {
	if f.Emulated {
		out = append(out, Banner{"emulated", "Emulated GPU", "Some of the GPUs are a program that keeps a log, not hardware; their jobs are marked. GPU numbers of those hold for the emulation only."})
	}
	if seen := share(f.Window.Seen); seen.Known && seen.Value < 0.98 {
		out = append(out, Banner{"partly", "Not all of the window", "The server has data of " + seen.Text + " of the window. What happened in the rest is in no number, but where counters grew over a gap."})
	}
	withheld := 0
	for _, w := range f.Workloads {
		if !w.Use.Allocated.IsKnown() {
			withheld++
		}
	}
	if withheld > 0 {
		out = append(out, Banner{"untrusted", "Numbers withheld", "The counters of " + plural(withheld, "job") + " contradict themselves: nothing is shown of them, and they are in no sum."})
	}
	return out
}

// fleetHeadline is how much is lost.
func fleetHeadline(f *fleet.Fleet) Headline {
	say := func(lead, text string) Headline {
		return Headline{Lead: lead, Text: text, Plain: text, Pieces: []Piece{{text, false}}}
	}
	allocated, lost := gpuHoursOf(f.Total.Use.Allocated), amountOf(f.Total.Use.Lost)
	switch {
	case f.Total.GPUs == 0:
		return say("No GPU was seen", "The server has no series of GPUs in these "+lengthOf(f.Window)+".")
	case allocated.Known && allocated.Value == 0:
		return say("Nothing was allocated", "No job had a GPU in these "+lengthOf(f.Window)+".")
	case !allocated.Known:
		return say("Allocation is not known", upper(sentence(allocated.Why)))
	case !lost.Known:
		return say("Losses are not known", upper(sentence("of "+allocated.Text+" that were allocated in "+lengthOf(f.Window)+", nobody knows what was lost: "+lost.Why)))
	}
	marked := fleetSizes(f, allocated, lost, withBound)
	h := Headline{Lead: lostLead(lost.Value/max(allocated.Value, 1e-12), f.Total.Use.Partial), Text: strings.ReplaceAll(marked, aside, ""), Plain: fleetSizes(f, allocated, lost, bare)}
	for i, s := range strings.Split(marked, aside) {
		if s != "" {
			h.Pieces = append(h.Pieces, Piece{s, i%2 == 1})
		}
	}
	return h
}

// withBound writes an amount with what it is at most and its grade behind it.
func withBound(q Quantity) string {
	var parts []string
	if q.Range != "" {
		parts = append(parts, q.Range)
	}
	if q.Grade != "" {
		parts = append(parts, "grade"+nbsp+q.Grade)
	}
	if len(parts) == 0 {
		return q.Text
	}
	return q.Text + " " + aside + "(" + strings.Join(parts, ", ") + ")" + aside
}

func lostLead(lost float64, partial bool) string {
	switch {
	case partial && lost < fleet.TrifleShare:
		return "Next to nothing is known to be lost"
	case partial:
		return "At least " + percent(lost) + " of the allocated GPU time is lost"
	case lost < fleet.TrifleShare:
		return "Next to nothing is lost"
	}
	return percent(lost) + " of the allocated GPU time is lost"
}

// fleetSizes says how many GPU-hours were allocated and lost, and what the loss amounts to.
func fleetSizes(f *fleet.Fleet, allocated, lost Quantity, show func(Quantity) string) string {
	u := f.Total.Use
	s := allocated.Text + " were allocated in " + lengthOf(f.Window) + ". "
	switch w, idle := waitingOf(u), amountOf(u.Idle); {
	case w.Known && idle.Known:
		s += show(w) + " went to waiting for data and " + show(idle) + " to idle allocation"
	case w.Known:
		s += show(w) + " went to waiting for data"
	default:
		s += show(idle) + " went to idle allocation"
	}
	if q := ratio(f.Total.Equivalent.Lost, equivalentStyle); q.Known && q.Value >= 0.01 {
		s += ": as much as " + q.Text + " GPUs that do nothing all the time"
	}
	if q := ratio(u.Lost.Money, fleetMoneyStyle); q.Known {
		s += ", or " + q.Text + " at " + ratio(f.HourCost, moneyStyle).Text + " a GPU-hour"
	}
	return s + "."
}

var equivalentStyle = style{digitsAfter, grouped, "", 1}

// fleetProof are the sentences below the headline: how much work was done, and how it was before.
func fleetProof(f *fleet.Fleet) (out []string) {
	if f.Total.Use.Allocated.Or(0) == 0 {
		return nil
	}
	e := f.Total.Equivalent
	if a, w := ratio(e.Allocated, equivalentStyle), ratio(e.Working, equivalentStyle); a.Known && w.Known {
		out = append(out, "On average "+a.Text+" GPUs were allocated, and did the work of "+w.Text+" GPUs whose processors are active all the time: SM activity is "+smOf(f.Total.Use).Text+".")
	} else if a.Known {
		out = append(out, "On average "+a.Text+" GPUs were allocated. How much they worked is unknown: "+clause(e.Working.Why())+".")
	}
	if h := gpuHoursOf(f.Total.Use.Unasked); h.Known && h.Value > 0 {
		out = append(out, "Of "+h.Text+" nobody knows whether they waited for data: no hook of datawait looked at those GPUs.")
	}
	for _, s := range f.Total.Shifts {
		if s.ID == fleet.ShiftLost {
			out = append(out, beforeSentence(f, s))
		}
	}
	return out
}

func beforeSentence(f *fleet.Fleet, s fleet.Shift) string {
	before := "The " + lengthOf(f.Before) + " before"
	b := gpuHoursOf(s.Before)
	if b.Known && f.Total.Use.Partial {
		b.Text = "at least " + b.Text
	}
	switch {
	case s.Outcome == fleet.Unknown:
		return before + " cannot be held against these: " + clause(s.Why) + "."
	case s.Outcome == fleet.Same:
		return before + " lost " + b.Text + ": no meaningful difference."
	}
	return before + " lost " + b.Text + ": " + trendWords(s) + "."
}

// slowRanks are sentences about ranks that keep the others of their jobs waiting.
func slowRanks(f *fleet.Fleet) (out []string) {
	for _, w := range f.Workloads {
		var ranks []string
		for _, r := range w.Slow {
			ranks = append(ranks, "rank "+cleanName(r.Rank)+" for "+known(r.Wait, percentStyle).Text)
		}
		if len(ranks) > 0 {
			out = append(out, ownerName(w)+": "+strings.Join(ranks, ", ")+" of its training, the median rank for "+known(w.Slow[0].Median, percentStyle).Text+". The others wait for it when gradients are exchanged, which counts as computing.")
		}
	}
	return out
}

// fleetAccounts is where the time went of which an agent kept books.
func fleetAccounts(u fleet.Use) (out []Account) {
	total := 0.0
	for _, h := range u.Accounts {
		total += h
	}
	for _, id := range slices.SortedFunc(maps.Keys(u.Accounts), func(x, y string) int { return cmp.Or(cmp.Compare(accountRank(x), accountRank(y)), cmp.Compare(x, y)) }) {
		if h := u.Accounts[id]; h > 0 && finite(h) && finite(total) {
			q := known(h/total, columnPercentStyle)
			out = append(out, Account{cleanName(id), accountName(id), known(h, fleetHourStyle).Text, q, min(100, 100*q.Value), accountMeanings[id]})
		}
	}
	return out
}

// fleetFacts are about all GPUs together.
func fleetFacts(f *fleet.Fleet) []Fact {
	t := f.Total
	words := func(m analysis.Ratio) string { return gpuHoursOf(m).Words() }
	if t.GPUs == 0 {
		return []Fact{{"GPUs seen", "none"}}
	}
	out := []Fact{
		{"GPUs seen", count(t.GPUs) + ", for " + words(t.Watched) + " together"},
		{"Allocated", words(t.Use.Allocated)},
		{"Allocated to nobody", words(t.Free)},
	}
	if h, ok := t.Unlabelled.Hours.Get(); ok && h > 0 {
		text := words(t.Unlabelled.Hours) + " of GPUs of which no series says whose they are"
		if q := share(t.Unlabelled.SMActive); q.Known {
			text += "; their SM activity is " + q.Text + " (grade B)"
		} else if q := share(t.Unlabelled.Resident); q.Known {
			text += "; some kernel was there for " + q.Text + " of it (grade C)"
		}
		out = append(out, Fact{"Allocation not known", text})
	}
	out = append(out, Fact{"SM activity", fleetAmount(smOf(t.Use))}, Fact{"Waiting for data", fleetAmount(waitingOf(t.Use))}, Fact{"Idle allocation", fleetAmount(amountOf(t.Use.Idle))},
		Fact{"Window", share(f.Window.Seen).Words() + " of it has data; of the one before " + share(f.Before.Seen).Words()})
	if q := share(t.Use.Covered); q.Known {
		out = append(out, Fact{"Seen by trustworthy counters", q.Text + " of the time that an agent booked"})
	}
	return out
}

func fleetAmount(q Quantity) string {
	if !q.Known {
		return q.Words()
	}
	if q.Grade == "" {
		return q.WithRange()
	}
	return q.WithRange() + ", grade " + q.Grade
}

// fleetMethod says how the numbers came about.
func fleetMethod(f *fleet.Fleet) []Fact {
	out := []Fact{
		{"Waiting", "GPU time in the accounts exposed wait and epoch start. At most: with waits of which no device clock says whether the GPU had work meanwhile (grade C). Of jobs without a hook it is unknown, which is not nothing."},
		{"Idle", "Allocated, and no process held the GPU, or one did and made no step. Of an exporter: an activity of at most " + percent(0.01) + " at a minute's look (grade C)."},
		{"Work", "SM activity times time, of the time in which it was read. Where an exporter does not serve it, the time in which some kernel was there is its upper bound."},
		{"Jobs", "All runs of one name in one namespace. What an exporter names is a pod; what the pod belongs to is inferred from its name."},
		{"Before", "The " + lengthOf(f.Before) + " before the window. Less than " + percent(fleet.TrifleHours) + " of hours, or " + known(fleet.TrifleShare, percentStyle).Number + " point of a share, is no meaningful difference. These are sums over everything that ran, so none has an interval; which jobs ran is part of a difference."},
		{"Exactness", "Growth of counters is read a day or less at a time. A job's beginning and end are known to half a scrape interval. What was counted in a gap at the border of two days is missed. Gauges of an exporter are looked at once a minute."},
	}
	if q := ratio(f.HourCost, moneyStyle); q.Known {
		out = append(out, Fact{"Money", "At " + q.Text + " a GPU-hour."})
	}
	return out
}

// fleetTerms are the words that a fleet uses.
func fleetTerms() []Term {
	out := []Term{
		{"GPU-hour", "One GPU for one hour."},
		{"allocated", "Given to a job, whatever it did with it."},
		{"idle allocation", "Allocated GPU time in which the job did not train: no process held the GPU, or one did and made no step."},
	}
	for _, t := range terms() {
		switch t.Word {
		case "rank", "data wait", "exposed wait", "epoch start", "SM activity", "grade":
			out = append(out, t)
		}
	}
	return out
}

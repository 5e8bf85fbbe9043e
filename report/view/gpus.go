package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// GPUs is the ladder of every GPU, what it comes to in hours and money, and what drivers reported.
type GPUs struct {
	Hours string   // "GPU-minutes: allocated 5.37 · held 5.33 · …"; "" where no GPU was watched
	Money string   // what the hours cost; "" where an hour has no price
	Table Table    // one row per GPU, each number with its grade
	Rungs Table    // one row per GPU and rung: share, hours, money, grade, how much of the time it covers, source
	Notes []string // clocks held down, narrow links, errors, sharing; one sentence each
}

// rungNames are the words for rungs.
var rungNames = map[string]string{
	"allocated": termAllocated, "held": termHeld, "resident": termResident, "sm_active": termSM, "tensor_active": termTensor,
}

func rungName(id string) string {
	if s, ok := rungNames[id]; ok {
		return s
	}
	return cleanName(id)
}

func gpusOf(r *analysis.Result) GPUs {
	g := GPUs{Table: gpuTable(r), Rungs: rungTable(r)}
	g.Hours, g.Money = hours(r), money(r)
	g.Notes = noted(r.GPUs)
	return g
}

// noted writes what is to be said of several GPUs once.
func noted(gpus []analysis.GPU) []string {
	var texts []string
	of := map[string][]string{}
	for _, g := range gpus {
		for _, text := range gpuNotes(g) {
			if of[text] == nil {
				texts = append(texts, text)
			}
			of[text] = append(of[text], orWords(gpuName(g), "A GPU"))
		}
	}
	for i, text := range texts {
		names := of[text][0]
		if n := len(of[text]) - 1; n > 0 {
			names += " and " + plural(n, "other")
		}
		texts[i] = names + ": " + text + "."
	}
	return texts
}

// hours are the rungs of the job in GPU-hours.
func hours(r *analysis.Result) string {
	all := rungHours(r, "allocated")
	total, ok := all.Get()
	if !ok || total <= 0 {
		return ""
	}
	st := scaleStyle(hourScales, total)
	var parts []string
	for _, x := range r.Ladder {
		parts = append(parts, rungName(x.Name)+" "+ratio(x.GPUHours, st).Number)
	}
	return pick(hourScales, total).suffix + ": " + strings.Join(parts, " · ")
}

func rungHours(r *analysis.Result, name string) analysis.Ratio {
	for _, x := range r.Ladder {
		if x.Name == name {
			return x.GPUHours
		}
	}
	return unit.None[float64]("no GPU was sampled")
}

// money says what the run's GPUs cost, and how much of that bought time in which processors of the GPU worked.
func money(r *analysis.Result) string {
	price, priced := r.HourCost.Get()
	if !priced || !finite(price) {
		return ""
	}
	lead := "Money, at " + amount(price, price) + " a GPU-hour: "
	var all, active analysis.Ratio
	grade := ""
	for _, x := range r.Ladder {
		switch x.Name {
		case "allocated":
			all = x.Cost
		case "sm_active":
			active = x.Cost
			if g, ok := x.Grade.Get(); ok {
				grade = " (grade " + string(g) + ")"
			}
		}
	}
	total, ok := all.Get()
	if !ok || !finite(total) {
		return lead + "what the allocated time cost is unknown: " + orWords(clause(all.Why()), "no GPU was watched") + "."
	}
	s := lead + "the allocated time cost " + amount(total, total)
	worked, ok := active.Get()
	if !ok || !finite(worked) {
		return s + "; how much of that the GPUs' processors worked for is unknown: " + orWords(clause(active.Why()), "it was not measured") + "."
	}
	digits := max(2, digitsAfter(total))
	parts := apportion([]float64{worked, total - worked}, total, style{func(float64) int { return digits }, decimal, "", 1})
	return s + ", of which " + parts[0] + " bought SM activity" + grade + " and " + parts[1] + " time without it."
}

// amount writes money with two decimals, and small sums with three digits.
func amount(x, of float64) string { return decimal(x, max(2, digitsAfter(of))) }

// gpuTable is one row per GPU. A number stands with its grade, for they may have different ones.
func gpuTable(r *analysis.Result) Table {
	t := Table{Columns: []Column{{"GPU", false}, {"held", true}, {"resident", true}, {"SM active", true}, {"tensor", true}, {"covered", true}}}
	for _, g := range r.GPUs {
		row := []Cell{textCell(gpuName(g))}
		for _, name := range []string{"held", "resident", "sm_active", "tensor_active"} {
			row = append(row, rungCell(g, name))
		}
		t.Rows = append(t.Rows, append(row, cell(ratio(g.Coverage, wholePercentStyle))))
	}
	return t
}

func rungCell(g analysis.GPU, name string) Cell {
	for _, x := range g.Ladder {
		if x.Name != name {
			continue
		}
		c := cell(ratio(x.Ratio, wholePercentStyle))
		if grade, ok := x.Grade.Get(); ok && !c.Missing {
			c.Text += nbsp + cleanName(string(grade))
			c.Why = "grade " + cleanName(string(grade)) + ", measured in " + share(x.Coverage).Text + " of the time, " + cleanName(x.Source)
		}
		return c
	}
	return cell(missing(unit.Unknown, "it was not worked out"))
}

// rungTable is every number of every ladder with what it is worth.
func rungTable(r *analysis.Result) Table {
	total := rungHours(r, "allocated").Or(0)
	st := scaleStyle(hourScales, total)
	t := Table{Caption: "The ladder of each GPU", Columns: []Column{{"GPU", false}, {"rung", false}, {"share", true}, {pick(hourScales, total).suffix, true},
		{"money", true}, {"grade", false}, {"measured in", true}, {"source", false}}}
	for _, g := range r.GPUs {
		for _, x := range g.Ladder {
			grade := Cell{Text: "none", Missing: true}
			if s, ok := x.Grade.Get(); ok {
				grade = textCell(cleanName(string(s)))
			}
			cost := cell(ratio(x.Cost, style{func(float64) int { return 2 }, decimal, "", 1}))
			if cost.Missing && !r.HourCost.IsKnown() {
				cost = Cell{}
			}
			t.Rows = append(t.Rows, []Cell{textCell(gpuName(g)), textCell(rungName(x.Name)), cell(ratio(x.Ratio, columnPercentStyle)), cell(hoursCell(x, st)), cost,
				grade, cell(ratio(x.Coverage, columnPercentStyle)), textCell(cleanName(x.Source))})
		}
	}
	if !r.HourCost.IsKnown() && len(t.Rows) > 0 {
		t.drop(4)
	}
	return t.tidy()
}

func hoursCell(x analysis.Rung, st style) Quantity {
	q := ratio(x.GPUHours, st)
	q.Text = q.Number
	return q
}

// fullClock reports whether the mean clock is the highest, but for what rounding to steps of 15 MHz takes.
func fullClock(s analysis.DeviceState) bool {
	now, known := s.Clock.Get()
	most, also := s.ClockMax.Get()
	return known && also && now > most-15e6
}

// worthNoting is the share of its working time from which what happened to a GPU is told.
const worthNoting = 0.05

// gpuNotes are sentences about one GPU that its numbers do not tell.
func gpuNotes(g analysis.GPU) (out []string) {
	add := func(text string) { out = append(out, text) }
	for _, e := range g.Events {
		if text := happened(e); text != "" {
			add(text)
		}
	}
	for _, x := range []struct {
		by    string
		share analysis.Ratio
	}{{"by temperature", g.State.Thermal}, {"by the board (a slowdown or a power brake)", g.State.Hardware}, {"by its power limit", g.State.PowerCap}} {
		if v := x.share.Or(0); v >= worthNoting {
			happened := "the clock was held down " + x.by
			if fullClock(g.State) {
				happened = "the driver said that the clock was held down " + x.by + ", yet it was at its highest,"
			}
			add(happened + " for " + share(x.share).Text + " of the time it worked" + clocks(g.State))
		}
	}
	if text := narrow(g.State); text != "" {
		add(text)
	}
	if how, ok := g.Shared.Get(); ok && how != "no" {
		add("shared (" + cleanName(how) + "), so its numbers are of all its holders together, and of none of them alone")
	}
	if parent, ok := g.Parent.Get(); ok {
		add("a slice of " + shortUUID(parent) + "; its shares are of the slice, not of the whole GPU")
	}
	for _, pair := range analysis.Inverted(g.Ladder) {
		upper, lower := pair[0], pair[1]
		add(rungName(lower.Name) + " reads " + ratio(lower.Ratio, wholePercentStyle).Text + " and " + rungName(upper.Name) + " " + ratio(upper.Ratio, wholePercentStyle).Text +
			", which cannot be of one time: one of them is wrong, or they were measured at different times")
	}
	if v := g.Untrusted.Or(0); v > 0 {
		add(share(g.Untrusted).Text + " of its counter windows contradict themselves and count for nothing; they are not idleness")
	}
	return out
}

func happened(e analysis.DeviceEvent) string {
	text := ""
	switch e.Name {
	case "xid":
		text = "the driver reported an error (Xid of an unknown number)"
		if n, ok := e.Xid.Get(); ok {
			text = "the driver reported an error (Xid " + count(n) + ")"
		}
	case "lost":
		text = "lost to the driver"
	default:
		return ""
	}
	if e.Count > 1 {
		text += " " + plural(e.Count, "time")
	}
	if finite(e.Seconds) && e.Seconds >= 0 {
		text += ", first " + duration(e.Seconds) + " into the run"
		if e.Count == 1 {
			text = strings.Replace(text, ", first ", ", ", 1)
		}
	}
	return text
}

func clocks(s analysis.DeviceState) string {
	now, ok1 := s.Clock.Get()
	most, ok2 := s.ClockMax.Get()
	if !ok1 || !ok2 || !(most > 0) || !finite(now) || !finite(most) {
		return ""
	}
	text := ", on average at " + decimal(now/1e9, 2) + nbsp + "of" + nbsp + decimal(most/1e9, 2) + nbsp + "GHz"
	if q := share(s.WorkPower); q.Known {
		text += " and " + q.Text + " of its power limit"
	}
	return text
}

func narrow(s analysis.DeviceState) string {
	generation, ok1 := s.LinkGen.Get()
	lanes, ok2 := s.LinkWidth.Get()
	mostGeneration, ok3 := s.LinkGenMost.Get()
	mostLanes, ok4 := s.LinkWidthMost.Get()
	if !ok1 || !ok2 || !ok3 || !ok4 || generation >= mostGeneration && lanes >= mostLanes {
		return ""
	}
	return "at work with " + plural(lanes, "lane") + " of PCIe generation " + count(generation) + "; card and slot can do " + plural(mostLanes, "lane") + " of generation " + count(mostGeneration)
}

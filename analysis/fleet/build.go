package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Row is one row of an answer.
type Row struct {
	Labels map[string]string
	Value  float64
}

// Answers are the rows of each question by its name, those of all pieces of a window together.
type Answers map[string][]Row

// Options say what the answers are of.
type Options struct {
	Version, Server string
	Until           time.Time
	Window          time.Duration
	HourCost        float64 // 0 = not said
	Warnings        []string
}

// Build makes a fleet of the answers about a window and about the one before it.
func Build(now, before Answers, o Options) *Fleet {
	f := &Fleet{Schema: Schema, Version: o.Version, Server: o.Server, Warnings: o.Warnings, HourCost: unit.None[float64]("nobody said what a GPU-hour costs")}
	if o.HourCost > 0 {
		f.HourCost = unit.Some(o.HourCost)
	}
	f.Window, f.Before = stretch(now, o.Until, o.Window), stretch(before, o.Until.Add(-o.Window), o.Window)
	current, earlier := read(now, o.Window), read(before, o.Window)
	f.Emulated = current.emulated() || earlier.emulated()
	limits := bounds{f.Window, f.Before}
	for _, b := range current.sorted() {
		then := earlier.books[b.owner]
		if then != nil && then.allocated <= 0 {
			then = nil
		}
		f.Workloads = append(f.Workloads, workload(b, then, limits, f.HourCost))
	}
	slices.SortStableFunc(f.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(b.Use.Lost.Hours.Or(-1), a.Use.Lost.Hours.Or(-1)), cmp.Compare(b.Use.Allocated.Or(-1), a.Use.Allocated.Or(-1)))
	})
	f.Total = total(current, earlier, limits, f.HourCost)
	f.Remarks = remarks(current, f)
	return f
}

func stretch(a Answers, until time.Time, length time.Duration) Stretch {
	s := Stretch{From: until.Add(-length), Until: until, Seconds: length.Seconds(), Seen: unit.Some(0.0)}
	for _, r := range a[QuerySeen] {
		s.Seen = unit.Some(min(1, r.Value/s.Seconds))
	}
	return s
}

// workload makes the entry of a job. before is nil where the job was not there.
func workload(b, before *book, limits bounds, price analysis.Ratio) Workload {
	w := Workload{Job: b.job, Namespace: b.namespace, Source: b.source, Emulated: b.isEmulated, GPUs: len(b.gpus), Holders: b.holders, Use: b.use(price), Slow: b.slow()}
	w.Hooked = unit.NotSupported[int]("an exporter does not know of hooks")
	switch {
	case b.source == Agent && b.hooked[""]:
		w.Hooked = unit.None[int]("of some ranks the GPU is not known")
	case b.source == Agent:
		w.Hooked = unit.Some(len(b.hooked))
	}
	var earlier Use
	if before != nil {
		earlier = before.use(price)
		w.Before = &earlier
	}
	w.Shifts = limits.shifts(earlier, w.Use, before != nil)
	return w
}

// total sums the books of all jobs.
func total(now, before *tally, limits bounds, price analysis.Ratio) Whole {
	all, earlier := now.all(), before.all()
	w := Whole{GPUs: len(now.watched), Use: all.use(price), Watched: hours(now.watchedSeconds()), Free: hours(now.free)}
	w.Unlabelled = Unlabelled{hours(now.unlabelled), share(now.nobodys.active, now.nobodys.read, "SM activity was not read"), share(now.nobodys.resident, now.nobodys.looked, "no counter of it was served")}
	switch {
	case len(now.watched) == 0:
		w.Watched = unit.None[float64]("no GPU was seen")
		w.Free, w.Unlabelled.Hours = w.Watched, w.Watched
	case len(now.sorted()) == 0 && now.unlabelled > 0:
		w.Use, w.Free = lost(w.Use, "no series says whose the GPUs are"), unit.None[float64]("no series says whose the GPUs are")
	case len(now.sorted()) == 0:
		w.Use.Allocated = unit.Some(0.0)
	}
	per := func(a analysis.Ratio) analysis.Ratio {
		h, ok := a.Get()
		if !ok {
			return a
		}
		return unit.Some(h / (limits.now.Seconds / 3600))
	}
	w.Equivalent = Equivalent{Allocated: per(w.Use.Allocated), Working: per(w.Use.Working.Hours), Lost: per(w.Use.Lost.Hours)}
	w.Shifts = limits.shifts(earlier.use(price), w.Use, len(before.sorted()) > 0)
	return w
}

func hours(seconds float64) analysis.Ratio { return unit.Some(seconds / 3600) }

// amount is hours with their price and grade.
func amount(h analysis.Ratio, price analysis.Ratio, grade stat.Grade) Amount {
	a := Amount{Hours: h, Money: price, Grade: grade}
	x, known := h.Get()
	p, priced := price.Get()
	switch {
	case !known:
		a.Money, a.Grade = h, ""
	case priced:
		a.Money = unit.Some(x * p)
	}
	return a
}

// remarks are what a reader must know of the whole.
func remarks(t *tally, f *Fleet) (out []string) {
	if n := t.slices; n > 0 {
		out = append(out, fmt.Sprintf("MIG slices are among the GPUs, %d: an hour of a slice counts as an hour", n))
	}
	if len(t.impossible) > 0 {
		out = append(out, fmt.Sprintf("counters of GPUs (%d) grew by more than the time that passed: the numbers of the jobs that had them are withheld", len(t.impossible)))
	}
	if t.both > 0 {
		out = append(out, fmt.Sprintf("an agent of datawait and an exporter watch the same GPUs (%d): the agent's numbers count, also for times in which only the exporter was there", t.both))
	}
	if t.unlabelled > 0 && f.Total.Use.Allocated.Or(0) > 0 {
		out = append(out, "of some GPUs no series says whose they are: they are in no job")
	}
	return out
}

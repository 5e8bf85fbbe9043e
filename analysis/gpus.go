package analysis

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// gpus writes every GPU's row: the ladder from allocated to tensor-active, over the same time that the ledger books.
func (r *run) gpus() {
	for _, d := range r.devices {
		r.out.GPUs = append(r.out.GPUs, d.row)
		r.out.Emulated = r.out.Emulated || emulated(d)
	}
	for _, k := range r.ranked {
		r.out.Emulated = r.out.Emulated || k.Emulated
	}
	slices.SortStableFunc(r.out.GPUs, func(a, b GPU) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.UUID, b.UUID))
	})
	r.out.Ladder, r.out.HourCost = ladderOf(r.out.GPUs), priceOf(r.options.HourCost)
}

// describe is the GPU's row.
func (r *run) describe(d *device) GPU {
	g := GPU{UUID: d.Note.UUID, Name: d.Note.Name, Host: d.Node.Host, Source: d.Note.Source, Emulated: emulated(d),
		GI: instance(d.Note.GI), CI: instance(d.Note.CI), Parent: unit.None[string](noSlice),
		Grade: d.grade, AllocatedNS: d.books.Allocated, AccountsNS: map[string]int64{}, Holders: []string{}}
	if d.Note.Parent != "" {
		g.Parent = unit.Some(d.Note.Parent)
	}
	for _, a := range ledger.Accounts() {
		if d.tells(a) {
			g.AccountsNS[a.String()] = d.books.NS[a]
		}
	}
	g.CollectiveNS = unit.None[int64]("no source tells kernels that exchange gradients from others")
	switch {
	case d.unfed():
		g.WaitUpperBoundNS = unit.None[int64](noFetch)
	case d.books.WaitUpperBound > 0:
		g.WaitUpperBoundNS = unit.Some(d.books.WaitUpperBound)
	default:
		g.WaitUpperBoundNS = unit.None[int64]("every wait has a device clock")
	}
	c := d.ladder
	g.Coverage = quotient(float64(c.covered), float64(d.books.Allocated), "no time was allocated")
	g.Untrusted = quotient(float64(c.untrusted), float64(c.windows), noWindow)
	g.HeldRatio = quotient(float64(c.held), float64(c.heldKnown), d.whyNotHeld())
	g.ResidentRatio = quotient(c.resident, c.residentKnown, d.whyNotResident())
	g.TensorActiveRatio = quotient(c.tensor, c.tensorKnown, "tensor activity was not read")
	g.SMActiveRatio = portion(c.sm, c.smCount, coveredGrade(d.grade, c.smKnown/float64(max(1, d.books.Allocated))), d.counters(), d.whyNoActivity())
	g.SMActiveComputing, g.SMActiveWaiting = d.unmixed.computing, d.unmixed.waiting
	d.holders(&g)
	g.Ladder = d.rungs(&g, r.options.HourCost)
	g.SMActiveRatio = gradedAs(g.SMActiveRatio, g.Ladder)
	g.Pipes, g.State, g.Events = d.pipesRow(), d.stateRow(), r.events(d)
	return g
}

// gradedAs gives SM activity the grade of its rung, if that is worse.
func gradedAs(sm Est, ladder []Rung) Est {
	e, ok := sm.Get()
	if !ok {
		return sm
	}
	for _, r := range ladder {
		if r.Name == rungSM {
			e.Grade = stat.Worse(e.Grade, r.Grade.Or(e.Grade))
		}
	}
	return unit.Some(e)
}

const noSlice = "it is no MIG slice"

func instance(n unit.Maybe[int64]) unit.Maybe[int] {
	if v, ok := n.Get(); ok && v >= 0 && v < 1<<16 {
		return unit.Some(int(v))
	}
	return unit.None[int]("no MIG instance was reported")
}

func (d *device) whyNotHeld() string {
	if d.holding.hidden > 0 {
		return "no process is listed on it, and something uses it: whoever holds it cannot be seen from here"
	}
	return "no source told who holds this GPU"
}

// whyNotResident is why it is not known whether kernels were there.
func (d *device) whyNotResident() string {
	if c := &d.ladder; c.windows > 0 && c.untrusted == c.windows {
		return contradicts
	}
	return noWindow
}

const contradicts = "the counters contradict themselves in every window"

// whyNoActivity is why SM activity is not known: the source says so itself, or the windows cannot be trusted.
func (d *device) whyNoActivity() string {
	switch c := d.ladder; {
	case c.windows > 0 && c.untrusted == c.windows:
		return contradicts
	case d.Note.Why != "":
		return noActivity + ": " + shortened(d.Note.Why)
	}
	if all := troubles(d.Node); len(all) > 0 {
		return noActivity + ": " + shortened(all[0])
	}
	return noActivity
}

// tells reports whether anything could have put time into an account: an empty one of these is not 0, it is not known.
func (d *device) tells(a ledger.Account) bool {
	switch a {
	case ledger.Compute, ledger.Host, ledger.IdleHeld:
		return d.books.NS[a] > 0 || !d.shared()
	case ledger.Collective:
		return d.books.NS[a] > 0
	case ledger.Copy:
		return slices.ContainsFunc(d.Windows, func(w load.Window) bool { return w.Copy == w.Copy })
	}
	return true
}

const (
	noWindow   = "no counter window covers this GPU's allocated time"
	noActivity = "SM activity was not read"
)

// coveredGrade is what is left of a grade when only a part of the time was measured.
func coveredGrade(g stat.Grade, covered float64) stat.Grade {
	switch {
	case covered < coversHalf:
		return stat.GradeC
	case covered < coversWell:
		return stat.Worse(g, stat.GradeB)
	}
	return g
}

// counters names who read them.
func (d *device) counters() string {
	if emulated(d) {
		return "emulated counters"
	}
	return cmp.Or(d.Note.Source, "GPU counters")
}

// ladder is what the windows in allocated time add up to.
type ladder struct {
	windows, untrusted      int
	covered                 int64
	held, heldKnown         int64
	resident, residentKnown float64
	byEngine, byDriver      float64
	tensor, tensorKnown     float64
	sm                      *stat.Ratio
	smCount                 int
	smKnown                 float64
}

// show finds out what the counters showed.
func (r *run) show(d *device) {
	d.ladder, d.unmixed, d.counted = d.climb(), d.unmix(), len(d.Windows)
	for i := range d.Windows {
		d.length += float64(d.Windows[i].End - d.Windows[i].Begin)
	}
	d.row = r.describe(d)
}

// climb adds up the windows, each by the part of it that is allocated. Untrusted ones count as untrusted and as nothing else.
func (d *device) climb() ladder {
	c := ladder{sm: stat.Batch(max(1, len(d.Windows)/32))}
	allocated := d.allocated()
	c.held, c.heldKnown = d.holding.held.within(allocated), d.holding.held.within(allocated)+d.holding.free.within(allocated)
	for i := range d.Windows {
		w := &d.Windows[i]
		ns := float64(allocated.overlap(w.Begin, w.End))
		if ns == 0 {
			continue
		}
		c.windows++
		if w.Untrusted {
			c.untrusted++
			continue
		}
		known := false
		sum := func(v float32, total, weight *float64) {
			if v == v {
				known = true
				*total += float64(v) * ns
				*weight += ns
			}
		}
		sum(w.Resident, &c.resident, &c.residentKnown)
		switch {
		case w.ByEngine():
			c.byEngine += ns
		case w.ByDriver():
			c.byDriver += ns
		}
		sum(w.Tensor, &c.tensor, &c.tensorKnown)
		if w.SM == w.SM {
			known = true
			c.sm.Add(float64(w.SM)*ns, ns)
			c.smKnown += ns
			c.smCount++
		}
		d.addPipes(w, ns)
		if known {
			c.covered += int64(ns)
		}
	}
	return c
}

// allocated returns when the ledger counts this GPU's time.
func (d *device) allocated() spans {
	if d.Node.Begin == load.Unknown {
		return nil
	}
	var all spans
	for _, k := range d.ranks {
		if k.TestBegan == load.Unknown {
			continue
		}
		all = all.add(d.Node.Begin, k.TestBegan)
		for _, s := range k.live {
			if s.begin >= k.TestBegan {
				all = all.add(s.begin, s.end)
			}
		}
		return all
	}
	return all.add(d.Node.Begin, d.Node.End)
}

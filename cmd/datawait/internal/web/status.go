package web

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/exporters/prometheus"
	"github.com/datawait/datawait/probe/unit"
)

// status is what the first page tells a person: words and rounded numbers, no more of each than fit a screen.
type status struct {
	Jobs     []jobRow
	GPUs     []gpuRow
	Sources  []sourceRow
	MoreJobs int // that are not listed
	MoreGPUs int
	Problems []string
}

const rowsOfPage = 64

type jobRow struct {
	Name, Where, Ranks, Steps, WaitShare, Exposed string
	waited                                        float64
}

type gpuRow struct {
	Name, UUID, Source, Holder, SMActivity, Idle string
}

type sourceRow struct {
	Name, State, Why string
}

// statusOf turns what is known into rows.
func statusOf(s *live.Snapshot, a prometheus.Agent, problems []string) status {
	out := status{Problems: problems}
	for _, source := range a.Sources {
		row := sourceRow{Name: source.Name, State: "delivers", Why: source.Why}
		if !source.Up {
			row.State = "fails"
		}
		out.Sources = append(out.Sources, row)
	}
	if s == nil {
		return out
	}
	out.Jobs, out.MoreJobs = firstOf(jobRows(s))
	out.GPUs, out.MoreGPUs = firstOf(gpuRows(s))
	return out
}

func firstOf[T any](rows []T) (first []T, more int) {
	if len(rows) <= rowsOfPage {
		return rows, 0
	}
	return rows[:rowsOfPage], len(rows) - rowsOfPage
}

// jobRows adds the ranks of each job; the one that waited longest comes first.
func jobRows(s *live.Snapshot) (rows []jobRow) {
	all := map[live.Tenant]crew{}
	for i := range s.Ranks {
		c := all[s.Ranks[i].Tenant]
		c.add(&s.Ranks[i])
		all[s.Ranks[i].Tenant] = c
	}
	for _, j := range s.Jobs {
		c := all[j.Tenant]
		rows = append(rows, jobRow{Name: named(j.Tenant), Where: where(j.Tenant), Ranks: fmt.Sprintf("%d of %d", c.running, c.ranks), Steps: fmt.Sprint(c.steps),
			WaitShare: percent(c.wait, c.training), Exposed: percent(c.exposed, c.clocked), waited: c.wait})
	}
	slices.SortStableFunc(rows, func(a, b jobRow) int { return cmp.Compare(b.waited, a.waited) })
	return rows
}

// crew sums the ranks of a job; times are ns.
type crew struct {
	ranks, running                   int
	steps                            uint64
	training, wait, clocked, exposed float64
}

func (c *crew) add(r *live.Rank) {
	c.ranks++
	if r.Running {
		c.running++
	}
	c.steps += r.Steps
	c.training += float64(r.Training)
	c.wait += float64(r.Wait)
	c.clocked += float64(r.WaitClocked)
	c.exposed += float64(r.Exposed)
}

// gpuRows adds what all tenants of a GPU did with it.
func gpuRows(s *live.Snapshot) (rows []gpuRow) {
	for _, g := range s.GPUs {
		var books ledger.Totals
		var active, seen float64
		for _, t := range s.Tenancies {
			if t.GPU == g.UUID {
				books = books.Add(t.Books)
				active += t.Activity.SMActive
				seen += t.Activity.SMSeen
			}
		}
		rows = append(rows, gpuRow{Name: prometheus.Clean(g.Name), UUID: prometheus.Clean(g.UUID), Source: source(g), Holder: holder(s, g), SMActivity: percent(active, seen),
			Idle: percent(float64(books.NS[ledger.IdleHeld]+books.NS[ledger.NotHeld]), float64(books.Allocated))})
	}
	return rows
}

func source(g live.GPU) string {
	text := prometheus.Clean(g.Source) + ", grade " + prometheus.Clean(g.Grade)
	if g.Emulated {
		text += ", emulated"
	}
	return text
}

// holder names who has a GPU now.
func holder(s *live.Snapshot, g live.GPU) (names string) {
	n := 0
	for _, h := range s.Holders {
		if h.GPU == g.UUID {
			n++
			names = named(h.Tenant)
		}
	}
	switch {
	case n > 1:
		return fmt.Sprintf("%d tenants", n)
	case n == 1:
		return names
	}
	return assigned(g.Assigned)
}

func assigned(is unit.Maybe[bool]) string {
	held, known := is.Get()
	switch {
	case !known:
		return "not known"
	case held:
		return "somebody without a name"
	}
	return "nobody"
}

func named(t live.Tenant) string { return cmp.Or(prometheus.Clean(t.Job), "(no name)") }

// where says where Kubernetes runs a job, "" elsewhere.
func where(t live.Tenant) string {
	if t.Namespace == "" && t.Pod == "" {
		return ""
	}
	return prometheus.Clean(t.Namespace) + "/" + prometheus.Clean(t.Pod)
}

// percent is a share of what was seen, – where nothing was.
func percent(part, whole float64) string {
	if !(whole > 0) {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}

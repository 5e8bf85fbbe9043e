package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// ranks is one row per training process.
func ranks(r *analysis.Result) Table {
	t := Table{
		Caption: "Ranks",
		Columns: []Column{{"rank", true}, {"host", false}, {"GPU", false}, {"steps", true}, {"step", true}, {"data wait", true}, {"exposed wait", true}, {"CPU of the main process", true}, {"ended", false}},
	}
	for _, k := range r.Ranks {
		t.Rows = append(t.Rows, []Cell{
			textCell(rankName(k)), textCell(cleanName(k.Host)), words(k.GPUUUID), textCell(count(k.Steps)), cell(scaled(k.MeanStepSeconds, timeScales)),
			cell(share(k.DataWaitShare)), cell(share(k.ExposedWaitShare)), cell(cores(k.MainCPUCores)), textCell(cleanName(k.Ended)),
		})
	}
	return t
}

func rankName(k analysis.Rank) string {
	if n, ok := k.Restart.Get(); ok && n > 0 {
		return count(k.Rank) + " (restart " + count(n) + ")"
	}
	return count(k.Rank)
}

func cores(m analysis.Ratio) Quantity {
	q := ratio(m, coresStyle)
	if q.Known {
		q.Text += nbsp + "cores"
	}
	return q
}

func words(m unit.Maybe[string]) Cell {
	s, ok := m.Get()
	if !ok {
		return cell(missing(m.State(), m.Why()))
	}
	return textCell(cleanName(s))
}

// gpus is one row per device or slice of one.
func gpus(r *analysis.Result) Table {
	t := Table{
		Caption: "GPUs",
		Columns: []Column{{"GPU", false}, {"device", false}, {"host", false}, {"held", true}, {"resident", true}, {"SM active", true}, {"tensor", true},
			{"SM active computing", true}, {"SM active waiting", true}, {"covered", true}, {"grade", false}, {"source", false}},
	}
	for _, g := range r.GPUs {
		t.Rows = append(t.Rows, []Cell{
			textCell(gpuName(g)), textCell(cleanName(g.Name)), textCell(cleanName(g.Host)), cell(share(g.HeldRatio)), cell(share(g.ResidentRatio)),
			cell(estimate(g.SMActiveRatio, percentStyle)), cell(share(g.TensorActiveRatio)), cell(estimate(g.SMActiveComputing, percentStyle)),
			cell(estimate(g.SMActiveWaiting, percentStyle)), cell(share(g.Coverage)), textCell(cleanName(string(g.Grade))), textCell(sourceName(g)),
		})
	}
	return t
}

// gpuName shortens a UUID to its first group and names a MIG slice.
func gpuName(g analysis.GPU) string {
	s := shortUUID(g.UUID)
	if gi, ok := g.GI.Get(); ok {
		s += " slice " + count(gi)
		if ci, ok := g.CI.Get(); ok {
			s += "/" + count(ci)
		}
	}
	return s
}

func shortUUID(s string) string {
	if head, tail, ok := strings.Cut(s, "-"); ok && len(head) <= 4 && len(tail) >= 8 {
		return cleanName(head + "-" + tail[:8])
	}
	return cleanName(s)
}

func sourceName(g analysis.GPU) string {
	s := cleanName(g.Source)
	if g.Emulated && !strings.Contains(s, "emulated") {
		s += " (emulated)"
	}
	return s
}

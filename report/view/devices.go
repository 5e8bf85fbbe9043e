package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// devices is one row per training process with the GPU it used, and one per GPU that no process named.
func devices(r *analysis.Result) Table {
	t := Table{Columns: append(rankColumns(), gpuColumns()...)}
	named := map[string]bool{}
	step := columnScale(r.Ranks)
	for _, k := range r.Ranks {
		uuid, ok := k.GPUUUID.Get()
		g, found := gpuOf(r.GPUs, uuid)
		row := append(rankCells(k, step), gpuCells(g, found && ok)...)
		if !found {
			row[len(rankColumns())] = words(k.GPUUUID)
		}
		named[uuid] = named[uuid] || ok
		t.Rows = append(t.Rows, row)
	}
	for _, g := range r.GPUs {
		if !named[g.UUID] {
			t.Rows = append(t.Rows, append(noRank(), gpuCells(g, true)...))
		}
	}
	return t.tidy()
}

func rankColumns() []Column {
	return []Column{{"rank", false}, {"host", false}, {"ended", false}, {"steps", true}, {"step", true}, {"data wait", true}, {"exposed wait", true}, {"main process", true}}
}

func gpuColumns() []Column {
	return []Column{{"GPU", false}, {"device", false}, {"source", false}, {"grade", false}, {"covered", true}, {"held", true}, {"resident", true}, {"SM active", true},
		{"while computing", true}, {"while waiting", true}, {"tensor", true}, {"held by", false}}
}

func rankCells(k analysis.Rank, step style) []Cell {
	return []Cell{
		textCell(rankName(k)), textCell(cleanName(k.Host)), textCell(endedWords(k.Ended)), textCell(count(k.Steps)), cell(ratio(k.MeanStepSeconds, step)),
		cell(ratio(k.DataWaitShare, columnPercentStyle)), cell(ratio(k.ExposedWaitShare, columnPercentStyle)), cell(cores(k.MainCPUCores)),
	}
}

func noRank() []Cell {
	row := make([]Cell, len(rankColumns()))
	row[0] = Cell{Text: "none", Why: "no process of the job named this GPU", Missing: true}
	return row
}

func gpuCells(g analysis.GPU, ok bool) []Cell {
	if !ok {
		return make([]Cell, len(gpuColumns()))
	}
	st := columnPercentStyle
	return []Cell{
		textCell(gpuName(g)), textCell(deviceName(g)), textCell(sourceName(g)), textCell(cleanName(string(g.Grade))), cell(ratio(g.Coverage, st)),
		cell(ratio(g.HeldRatio, st)), cell(ratio(g.ResidentRatio, st)), cell(estimate(g.SMActiveRatio, st)), cell(estimate(g.SMActiveComputing, st)),
		cell(estimate(g.SMActiveWaiting, st)), cell(ratio(g.TensorActiveRatio, st)), textCell(holders(g)),
	}
}

// endedWords says how a process came to its end.
func endedWords(how string) string {
	if how == "parked" { // it stood still after the test until datawait ended it
		return "after the test"
	}
	return cleanName(how)
}

// holders names the processes that have the GPU open.
func holders(g analysis.GPU) string {
	return strings.ReplaceAll(cleanName(strings.Join(g.Holders, ", ")), " ", nbsp)
}

func gpuOf(gpus []analysis.GPU, uuid string) (analysis.GPU, bool) {
	for _, g := range gpus {
		if g.UUID == uuid && uuid != "" {
			return g, true
		}
	}
	return analysis.GPU{}, false
}

// columnScale is the scale of a column of step times: that of the longest.
func columnScale(ranks []analysis.Rank) style {
	longest := 0.0
	for _, k := range ranks {
		longest = later(longest, k.MeanStepSeconds.Or(0))
	}
	return scaleStyle(timeScales, longest)
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
	return textCell(shortUUID(s))
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

// deviceName is the model of a GPU; the emulated one has none beyond its source.
func deviceName(g analysis.GPU) string {
	if s := cleanName(g.Name); s != sourceName(g) {
		return s
	}
	return ""
}

func sourceName(g analysis.GPU) string {
	s := cleanName(g.Source)
	if g.Emulated && !strings.Contains(s, "emulated") {
		s += " (emulated)"
	}
	return s
}

// loaders is one row per data loader.
func loaders(r *analysis.Result) Table {
	t := Table{Caption: "Data loaders", Columns: []Column{{"loader", false}, {"role", false}, {"kind", false}, {"workers", true}, {"batches", true}, {"waited", true},
		{"build, one worker", true}, {"build, undisturbed", true}, {"read per batch", true}, {"by", false}, {"epoch start", true}, {"arguments", false}}}
	for _, l := range r.Loaders {
		t.Rows = append(t.Rows, []Cell{
			textCell(orWords(cleanName(l.Dataset), "loader "+count(l.ID))), textCell(cleanName(l.Role)), textCell(cleanName(l.Kind)), textCell(workers(l)),
			textCell(count(l.Fetches)), cell(seconds(measured(l.WaitSeconds))), cell(timed(l.BuildSeconds)), cell(timed(l.SoloBuildSeconds)), cell(scaled(l.Bytes, byteScales)),
			textCell(cleanName(l.BytesSource)), cell(timed(l.EpochStartSeconds)), textCell(arguments(l)),
		})
	}
	return t
}

// timed writes an estimated time in the scale that suits it.
func timed(m analysis.Est) Quantity {
	e, _ := m.Get()
	if !finite(e.Value) {
		e.Value = 0
	}
	return estimate(m, scaleStyle(timeScales, e.Value))
}

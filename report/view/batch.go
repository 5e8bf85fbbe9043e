package view

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

// batches says for each loader where the time to build a batch goes: waiting, computing, waiting for a core.
func batches(r *analysis.Result) []Anatomy {
	var out []Anatomy
	for _, l := range r.Loaders {
		out = append(out, batch(r, l))
	}
	return out
}

func batch(r *analysis.Result, l analysis.Loader) Anatomy {
	build, _ := l.BuildSeconds.Get()
	if math.IsNaN(build.Value) || math.IsInf(build.Value, 0) {
		build.Value = 0
	}
	size := build.Value
	if size <= 0 { // the parts may be known where the whole is not
		size = max(0, l.OffCPUSeconds.Or(0), l.CPUSeconds.Or(0), l.RunQueueSeconds.Or(0))
	}
	if !finite(size) {
		size = 0
	}
	st := scaleStyle(timeScales, size)
	a := Anatomy{Name: batchName(r, l), Whole: estimate(l.BuildSeconds, st), Unit: pick(timeScales, size).suffix}
	for _, p := range []struct {
		id, name, note string
		seconds        analysis.Ratio
	}{
		{"off_cpu", "off-CPU", reads(l), l.OffCPUSeconds},
		{"cpu", "CPU", "", l.CPUSeconds},
		{"run_queue", "run queue", "", l.RunQueueSeconds},
	} {
		a.Parts = append(a.Parts, batchPart(p.id, p.name, p.note, p.seconds, build.Value, st))
	}
	a.Notes = batchNotes(r, l)
	return a
}

func batchPart(id, name, note string, seconds analysis.Ratio, whole float64, st style) Part {
	q := ratio(seconds, st)
	p := Part{ID: id, Name: name, Note: note, Known: q.Known, Value: q.Value, Text: q.Text}
	if !q.Known {
		p.Share, p.Note = missing(unit.Unknown, q.Why), q.Why
		return p
	}
	p.Text = st.number(q.Value, st.digits(q.Value))
	if whole > 0 {
		p.Share = known(q.Value/whole, percentStyle)
	} else {
		p.Text = q.Text // no whole beside it names the unit
	}
	return p
}

func batchName(r *analysis.Result, l analysis.Loader) string {
	if len(r.Loaders) == 1 {
		return "A batch"
	}
	name := "A " + orWords(cleanName(l.Role), "batch") + " batch"
	if l.Role == "other" {
		name = "Another batch"
	}
	if l.Dataset != "" {
		name += " of " + cleanName(l.Dataset)
	}
	return name
}

// reads says how often a batch goes to storage: requests where they were seen, else files opened.
func reads(l analysis.Loader) string {
	if n, ok := l.Requests.Get(); ok && n >= 0.5 && finite(n) {
		return plural(int(math.Round(n)), "request")
	}
	if n, ok := l.Files.Get(); ok && n >= 0.5 && finite(n) {
		return plural(int(math.Round(n)), "file") + " opened"
	}
	return ""
}

func batchNotes(r *analysis.Result, l analysis.Loader) []string {
	by := plural(l.WorkersSeen, "worker")
	switch {
	case unseen(l):
		by = "who builds it was not seen"
	case l.WorkersSeen == 0:
		by = "built in the training process"
	}
	if k := usableCores(r); k.Known && !unseen(l) {
		by += " on " + k.Text + " usable cores"
	}
	notes := []string{by}
	if q := scaled(l.CollateSeconds, timeScales); q.Known && q.Value > 0 {
		notes = append(notes, "of it "+q.Text+" to collate")
	}
	if q := scaled(l.Bytes, byteScales); q.Known {
		if l.BytesSource == analysis.AtLeast {
			q.Text = "at least " + q.Text
		}
		notes = append(notes, q.Text+" read")
	}
	return append(notes, readNotes(l.Reads)...)
}

// oftenRead is how often a name is read within an epoch before that is worth a word.
const oftenRead = 1.2

// readNotes says what opening a file costs, how much there is to read, and how often the same is read again.
func readNotes(r analysis.Reads) (notes []string) {
	if each := timed(r.PerReading); each.Known && r.PerSecond.IsKnown() {
		notes = append(notes, "each file costs "+each.Text+", then "+scaled(r.PerSecond, byteScales).Text+"/s")
	}
	if names, ok := r.Names.Get(); ok && finite(names.Value) {
		what := plural(int(math.Round(min(names.Value, math.MaxInt32))), "file") + " or objects"
		if set := scaled(r.SetBytes, byteScales); set.Known {
			what += ", " + set.Text
		}
		if !r.Complete.Or(false) {
			what = "so far " + what
		} else {
			what += " in all"
		}
		notes = append(notes, what)
	}
	if n, ok := r.PerEpoch.Get(); ok && n >= oftenRead && finite(n) {
		notes = append(notes, "each read "+number(n)+" times an epoch")
	}
	return append(notes, cacheNote(r)...)
}

// cacheNote says what half a cache is worth: of files in a fresh order, far less than half.
func cacheNote(r analysis.Reads) []string {
	for _, c := range r.CacheHits {
		if c.SetRatio != 0.5 || !r.Complete.Or(false) {
			continue
		}
		size := "half of them"
		if q := scaled(c.Bytes, byteScales); q.Known {
			size = q.Text
		}
		return []string{"a cache of " + size + " would hit " + known(c.Hits, percentStyle).Text}
	}
	return nil
}

// unseen reports that nobody said who builds the batches of a loader, and no builder was seen.
func unseen(l analysis.Loader) bool {
	return l.WorkersSeen == 0 && l.Kind == "watch" && string(l.Arguments["num_workers"]) == "null"
}

// workers is a table's count of them.
func workers(l analysis.Loader) string {
	if unseen(l) {
		return "unknown"
	}
	return count(l.WorkersSeen)
}

// arguments writes the arguments of a loader as a call would have them.
func arguments(l analysis.Loader) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(l.Arguments)) {
		if v := string(l.Arguments[name]); v != "null" { // a loader of another kind has no such argument
			parts = append(parts, name+"="+v)
		}
	}
	return cleanProse(strings.Join(parts, ", "))
}

func usableCores(r *analysis.Result) Quantity {
	m := r.Model.UsableCores
	if !m.IsKnown() {
		m = r.Host.UsableCores
	}
	return ratio(m, coresStyle)
}

// coresStyle writes a number of processor cores: two decimals below ten unless it is whole.
var coresStyle = style{coresDigits, decimal, "", 1}

func coresDigits(x float64) int {
	switch {
	case x == math.Trunc(x) || x >= 99.95:
		return 0
	case x >= 9.995:
		return 1
	}
	return 2
}

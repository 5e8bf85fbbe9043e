package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
)

// Stages is where the time of a loader's batch goes inside the code that builds it.
type Stages struct {
	Name  string // "A batch"
	Table Table  // one row per kind of work
	Exact Table  // transforms that were timed one by one
	Flame Flame
	Notes []string
}

// maxStages is how many loaders have their stages shown.
const maxStages = 4

// stages says it of the loaders whose builders were looked at.
func stages(r *analysis.Result) []Stages {
	var out []Stages
	for _, l := range r.Loaders {
		if len(l.Stages)+len(l.Transforms) == 0 || len(out) == maxStages {
			continue
		}
		s := Stages{Name: batchName(r, l), Table: stageTable(l).tidy(), Exact: transformTable(l).tidy(), Flame: flame(l)}
		if len(l.Stages) > 0 {
			s.Notes = stageNotes(l)
		}
		out = append(out, s)
	}
	return out
}

func stageTable(l analysis.Loader) Table {
	t := Table{Columns: []Column{{Head: "in a batch"}, {Head: "share", Number: true}, {Head: "95 % interval", Number: true}, {Head: "computing", Number: true},
		{Head: "waiting", Number: true}, {Head: "grade"}, {Head: "mostly in"}}}
	for _, s := range l.Stages {
		share := estimate(s.Share, wholePercentStyle)
		t.Rows = append(t.Rows, []Cell{textCell(cleanName(s.Stage)), cell(share), textCell(share.Range), cell(estimate(s.OnCPUShare, wholePercentStyle)),
			cell(estimate(s.OffCPUShare, wholePercentStyle)), textCell(share.Grade), textCell(mostly(s))})
	}
	return t
}

// mostly names the functions that make up a stage: one, or two where the second counts.
func mostly(s analysis.Stage) string {
	var names []string
	for _, f := range s.Functions {
		if f.Function == "" || len(names) == 2 || len(names) == 1 && f.Share < s.Functions[0].Share/4 {
			continue
		}
		names = append(names, functionName(f.Function))
	}
	return strings.Join(names, ", ")
}

// functionName is a function as a table shows it: the file without its folders.
func functionName(s string) string {
	file, name, ok := strings.Cut(s, ":")
	if !ok {
		return cleanName(s)
	}
	return cleanName(file[strings.LastIndexByte(file, '/')+1:] + ":" + name)
}

func stageNotes(l analysis.Loader) []string {
	s := l.Sampling
	notes := []string{count(s.Samples) + " looks at the stacks of " + plural(s.Processes, "process|processes") + "; computing includes waiting for a core. " +
		"Which function is which kind of work: analysis/stage/CLASSES.md."}
	if agree, known := s.Agree.Get(); known && !agree {
		counted := share(s.CountersOnCPU)
		notes = append(notes, "The kernel's counters tell another share of computing, "+counted.Words()+": take these as a hint.")
	}
	if x := s.OutsideShare.Or(0); x >= 0.01 {
		notes = append(notes, "In "+percent(x)+" of the looks a part of the stack found no room and counts for the caller.")
	}
	if c := ratio(s.Cores, percentStyle); c.Known {
		notes = append(notes, "Looking took "+c.Text+" of a core in each process.")
	}
	return notes
}

func transformTable(l analysis.Loader) Table {
	t := Table{Caption: "Transforms, timed one by one", Columns: []Column{{Head: "transform"}, {Head: "kind"}, {Head: "a call", Number: true}, {Head: "a batch", Number: true}, {Head: "share", Number: true}}}
	for _, x := range l.Transforms {
		_, name, _ := strings.Cut(x.Name, ":")
		t.Rows = append(t.Rows, []Cell{textCell(cleanName(name)), textCell(cleanName(x.Stage)), cell(known(x.SecondsPerCall, scaleStyle(timeScales, x.SecondsPerCall))),
			cell(scaled(x.Seconds, timeScales)), cell(share(x.Share))})
	}
	return t
}

// Package wrap runs one command under observation, from the first look at its arguments to the last line of its report.
//
// It decides what happens when: who observes on this node, when the test begins, when a throw-away run is ended and by
// whom, what is still done when datawait itself is told to stop, and which exit status all that leads to. Each act is
// another package's: run has the process, plan the blocks, folder the files, probe/… the observation, reports the end.
//
// It promises the command that nothing of it changes: files, terminal, signals, status. A failure of the observation is
// told and costs the observation, never the job.
//
// Read [Run], [Options] and [Outcome] first.
package wrap

import (
	"cmp"
	"os"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/cmd/datawait/internal/gate"
	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/trackrecord"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/report"
)

// What is chosen where nothing is said.
const (
	DefaultDuration = 3 * time.Minute
	DefaultInterval = 100 * time.Millisecond
	DefaultGrace    = 20 * time.Second
)

// Options say how to run a command. Only Command must be set.
type Options struct {
	Command []string
	Env     []string // added to datawait's own environment, "NAME=value"

	Test     bool // a throw-away run: the cached-data test is done, then the run is ended
	Duration time.Duration
	Steps    uint64          // of a throw-away run, at most; 0 = no limit
	Legs     []recording.Leg // of the test, the most important first
	Try      plan.Trying     // the best changes of loader arguments are tried in the run

	GPU      gpusource.Choice
	Interval time.Duration // one counter window
	Grace    time.Duration // from SIGTERM until datawait must be gone

	Out     string // output folder, "" = named after the job and the time
	Force   bool
	Formats []report.Format
	FailOn  gate.Gate

	HourCost    float64          // of a GPU, for the report; 0 = not told
	TrackRecord trackrecord.File // of predictions that were checked, which the report quotes

	Version string
	Quiet   bool // no progress and no report on the screen
	Files   Files
	// ScreenToErr puts the report on stderr: stdout is the command's alone.
	ScreenToErr bool
}

// withDefaults fills in what was left open, as the flags of the command line would.
func (o Options) withDefaults() Options {
	o.GPU.Kind = cmp.Or(o.GPU.Kind, gpusource.Auto)
	o.Duration = cmp.Or(o.Duration, DefaultDuration)
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.Files.In, o.Files.Out, o.Files.Err = cmp.Or(o.Files.In, os.Stdin), cmp.Or(o.Files.Out, os.Stdout), cmp.Or(o.Files.Err, os.Stderr)
	if o.Formats == nil {
		o.Formats = reports.Default
	}
	return o
}

// Files are handed to the command as they are.
type Files struct {
	In, Out, Err *os.File
}

// Outcome is what became of a run.
type Outcome struct {
	Result *analysis.Result // nil if no report could be made
	Dir    string           // output folder
	Status int              // exit status
}

// Package doctor says what datawait can measure on this machine, from which source, at which grade, and the one command or
// setting that raises it.
//
// It does not guess from signs. It rehearses: a short job of its own runs under `datawait record`, with the same agent, child and
// hook as any other job, and the findings are what its recording holds and lacks. Only what no recording can tell is looked up
// beside (package files binary.go and spool.go). So a doctor that is content has seen the thing work.
//
// Read [Examine] and [Document] first.
package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
)

// Schema names the JSON form.
const Schema = "datawait.doctor/1"

// Document is what doctor found.
type Document struct {
	Schema   string    `json:"schema"`
	Datawait string    `json:"datawait"` // version
	Machine  string    `json:"machine"`  // host name; "masked" in a capture
	Platform string    `json:"platform"` // linux/amd64, kernel
	Findings []Finding `json:"findings"` // by subject, in the order they are read
}

// Finding is one thing that is measured here, or not.
type Finding struct {
	ID      string  `json:"id"`              // fixed: "gpu", "hook", "run-queue", …
	Subject Subject `json:"subject"`         //
	State   State   `json:"state"`           //
	Grade   string  `json:"grade,omitempty"` // of what is measured: A, B or C
	Says    string  `json:"says"`            // one sentence: what is so, and what it means for a report
	Raise   string  `json:"raise,omitempty"` // the one command or setting that makes it better
}

// Subject is what a finding is about.
type Subject string

// Subjects, in the order of a report.
const (
	GPUs     Subject = "GPUs"
	Job      Subject = "training job"
	Machine  Subject = "machine"
	Datawait Subject = "datawait"
)

// State says how much of it is measured.
type State string

// States. Limited means that a report has it with a gap, and says so.
const (
	Good    State = "good"
	Limited State = "limited"
	Missing State = "missing"
)

// Options of an examination.
type Options struct {
	Version  string
	Self     string // path of the datawait binary that rehearses; "" = this one
	Python   string // interpreter of the rehearsal; "" = the first that has PyTorch, else the first there is
	GPU      gpusource.Choice
	Tell     func(string)  // progress; may be nil
	Patience time.Duration // for the rehearsal; 0 = a minute and a half: importing PyTorch from a cold disk takes long
}

// Examine rehearses and looks around. The error means that nothing could be found out at all.
func Examine(ctx context.Context, o Options) (Document, error) {
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	if o.Patience == 0 {
		o.Patience = 90 * time.Second
	}
	host, _ := os.Hostname()
	d := Document{Schema: Schema, Datawait: o.Version, Machine: host, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	python := choosePython(ctx, o.Python)
	o.Tell("rehearsing with " + python.String() + ": a job of some seconds under datawait record")
	s, err := rehearse(ctx, o, python.Path)
	if err != nil {
		return d, fmt.Errorf("rehearsing: %w", err)
	}
	if s.host.Kernel != "" {
		d.Platform += ", " + s.host.Kernel
	}
	d.add(lookAtGPUs(o.GPU, s)...)
	d.add(lookAtJob(python, s)...)
	d.add(lookAtBatches(s)...)
	d.add(lookAtMachine(s)...)
	d.add(lookAtSpool()...)
	d.add(lookAtBinary()...)
	return d, nil
}

func (d *Document) add(f ...Finding) { d.Findings = append(d.Findings, f...) }

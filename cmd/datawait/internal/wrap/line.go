package wrap

import (
	"fmt"
	"io"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/cmd/datawait/internal/progress"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	"github.com/datawait/datawait/probe/spool"
)

// newLine returns where progress is shown: live on a terminal, unless the run is quiet.
func newLine(o Options) *progress.Line {
	var w io.Writer
	if !o.Quiet {
		w = o.Files.Err
	}
	return progress.New(w, tty.Is(o.Files.Err), tty.Width(o.Files.Err))
}

// status gathers what the line tells.
func status(o Options, elapsed time.Duration, live []spool.Process, trained bool, c *conductor, sm float64) progress.Status {
	phase := "waiting for the first step"
	if trained { // and nobody is there any more who did
		phase = "the training has ended"
	}
	st := progress.Status{Phase: phase, Elapsed: elapsed, Left: -1, Wait: -1, SM: sm}
	wait, shares := 0.0, 0
	for _, p := range live {
		if p.Training < 0 && !stepsUnfed(p) {
			continue
		}
		st.Ranks++
		if p.Training >= 0 {
			st.Phase = "watching"
		} else if st.Ranks == 1 {
			st.Phase = "watching, no fetch is seen"
		}
		st.Steps = max(st.Steps, p.Step)
		if share, ok := p.Recent.WaitShare(); ok {
			wait, shares = wait+share, shares+1
		}
	}
	if shares > 0 {
		st.Wait = wait / float64(shares)
	}
	if c != nil {
		st.Left = max(o.Duration-elapsed, 0)
		c.describe(&st)
	}
	return st
}

// describe adds what the test is at.
func (c *conductor) describe(st *progress.Status) {
	d := c.decision
	if d.Phase != plan.Testing && d.Phase != plan.Parking {
		return
	}
	st.Phase, st.Detail = "testing on cached batches", "testing, between blocks"
	for i, b := range d.Blocks {
		if st.Steps >= b.First && st.Steps < b.End {
			st.Detail = fmt.Sprintf("testing %s, pair %d", legWords(fmt.Sprint(b.Leg)), i/2+1)
		}
	}
}

// legWords says what a leg feeds the training with, in the words of the report.
func legWords(leg string) string {
	switch leg {
	case "live":
		return "live data"
	case "host-cached":
		return "batches in memory"
	case "host-cached-busy":
		return "batches in memory, loader busy"
	case "device-cached":
		return "batches on the GPU"
	}
	return leg
}

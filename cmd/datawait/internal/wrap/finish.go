package wrap

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/compare"
	"github.com/datawait/datawait/cmd/datawait/internal/reports"
	"github.com/datawait/datawait/cmd/datawait/internal/run"
	"github.com/datawait/datawait/cmd/datawait/internal/tty"
	"github.com/datawait/datawait/report"
	"github.com/datawait/datawait/report/terminal"
)

// statusFindings is the exit status when the command succeeded and --fail-on found something.
const statusFindings = 3

// finish completes the recording first, then makes the report if there is time and nobody objects, and last waits for a
// command that outlives its grace.
func (s *session) finish(out string, e ended, signals <-chan os.Signal) (Outcome, error) {
	recorded := s.agent.finish(e)
	s.line.Clear()
	outcome := Outcome{Dir: out}
	made := false
	if !e.stopped {
		outcome.Result, made = s.reportWithin(out, e, signals)
	}
	if !e.known {
		e.exit, e.known = s.outlive(signals), true
	}
	outcome.Status = e.status()
	s.tellEnd(out, e, made)
	if recorded != nil {
		s.keep = true
		s.warn("the recording is not complete: %v", recorded)
		s.hint(fmt.Sprintf("`datawait report %s` reads what was written, `datawait report --format terminal %s` what the rings still hold",
			where(out), s.folder.Dir))
	}
	if outcome.Status != 0 || s.options.FailOn.Empty() {
		return outcome, nil
	}
	return s.judge(outcome)
}

// judge applies --fail-on to a run whose command succeeded.
func (s *session) judge(o Outcome) (Outcome, error) {
	if o.Result == nil {
		return o, errors.New("judging --fail-on: there is no report to judge")
	}
	found, err := s.options.FailOn.Findings(o.Result)
	for _, sentence := range found {
		s.warn("--fail-on: %s", sentence)
	}
	if len(found) > 0 {
		o.Status = statusFindings
		return o, nil
	}
	return o, err
}

// reportWithin makes the report unless the deadline passes or a second Ctrl-C says that datawait is to stop now; the first may
// be a person's who meant the command. The recording is complete, so a report that is given up can be made later.
func (s *session) reportWithin(out string, e ended, signals <-chan os.Signal) (*analysis.Result, bool) {
	type made struct {
		result *analysis.Result
		names  []string
		err    error
		track  error // of keeping the track record
	}
	done := make(chan made, 1)
	go func() {
		var m made
		m.result, _, m.err = reports.Analyse(out, analysis.Options{Version: s.options.Version, HourCost: s.options.HourCost})
		if m.err == nil {
			m.track = s.keepTrack(m.result)
			m.names, m.err = reports.Write(m.result, out, s.options.Formats)
		}
		done <- m
	}()
	var late <-chan time.Time
	if !e.deadline.IsZero() {
		late = time.After(time.Until(e.deadline))
	}
	for {
		select {
		case m := <-done:
			if m.err != nil {
				s.warn("making the report: %v", m.err)
				s.hint(fmt.Sprintf("`datawait report -o FOLDER %s` makes it elsewhere", where(out)))
			}
			if m.track != nil {
				s.line.Say("%v", m.track)
			}
			if m.result != nil {
				s.screen(m.result, m.names, out)
			}
			return m.result, m.result != nil
		case <-late:
			return nil, false
		case sig := <-signals:
			switch sig {
			case syscall.SIGINT:
				if e.interrupts++; e.interrupts > 1 {
					return nil, false
				}
				s.line.Say("the report is being made; another Ctrl-C leaves it out")
			case syscall.SIGTERM:
				if late == nil {
					late = time.After(s.options.Grace)
				}
			}
			s.job.Forward(sig.(syscall.Signal))
		}
	}
}

// keepTrack keeps what the run's own trials say of its predictions, and has the report quote how all came out. The report is made
// whatever becomes of that.
func (s *session) keepTrack(r *analysis.Result) error {
	err := s.options.TrackRecord.Keep(compare.Entries(r, s.options.Version, time.Now().UTC()))
	r.TrackRecord = s.options.TrackRecord.Quote(r.Emulated)
	return err
}

// screen shows the terminal's form, if it was asked for.
func (s *session) screen(r *analysis.Result, names []string, out string) {
	if s.options.Quiet || !wants(s.options.Formats, reports.Terminal) {
		return
	}
	w := s.options.Files.Out
	if s.options.ScreenToErr {
		w = s.options.Files.Err
	}
	o := terminal.Options{Color: tty.Color(w), Width: tty.Width(w), Files: names, Dir: where(out)}
	if err := reports.Screen(w, r, o); err != nil {
		s.line.Say("showing the report: %v", err)
	}
}

func wants(formats []report.Format, f report.Format) bool {
	for _, g := range formats {
		if g == f {
			return true
		}
	}
	return false
}

// outlive waits for a command that did not end within datawait's grace: its status is still to be passed on.
func (s *session) outlive(signals <-chan os.Signal) run.Exit {
	for {
		select {
		case <-s.job.Done():
			return s.job.Exit()
		case sig := <-signals:
			s.job.Forward(sig.(syscall.Signal))
		}
	}
}

// tellEnd says how the run ended where that is not as expected, and where to find what it left.
func (s *session) tellEnd(out string, e ended, made bool) {
	if e.exit.Status() != 0 && e.status() != 0 {
		s.line.Say("the command %s; the recording goes as far as it came", e.exit)
	}
	if !made {
		s.line.Say("no report was made; the recording is complete")
		s.hint(fmt.Sprintf("`datawait report %s` makes it", where(out)))
	}
}

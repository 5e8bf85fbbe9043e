// Package progress tells a person what a long run is at: one live line on a terminal, otherwise a few plain lines.
//
// It writes talk, never results, and nothing at all when it was told to be quiet. On a terminal the line is taken away
// before anything else is said, and at the end.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Status is what there is to tell at one moment. Ratios are 0–1; negative means not known.
type Status struct {
	Phase   string // "waiting for the first step"
	Detail  string // the phase at this moment, "testing live data, pair 2"; a live line says it instead
	Elapsed time.Duration
	Left    time.Duration // of the budget, negative = none
	Ranks   int
	Steps   uint64
	Wait    float64 // share of the last seconds
	SM      float64 // activity in the last window
}

// Line shows the state of a run.
type Line struct {
	w     io.Writer // nil = quiet
	live  bool      // a terminal: the line is replaced
	width int

	shown bool   // a live line stands on the terminal
	phase string // said last, where lines are plain
}

// New returns a line on w, live if w is a terminal of this width. A nil w is quiet.
func New(w io.Writer, live bool, width int) *Line { return &Line{w: w, live: live, width: width} }

// Show tells the status: at every call on a terminal, else when the phase changed.
func (l *Line) Show(s Status) {
	switch {
	case l.w == nil:
	case l.live:
		text := "datawait: " + s.text(true) + " | " // what the command writes next stands behind the bar
		if r := []rune(text); l.width > 1 && len(r) >= l.width {
			text = string(r[:l.width-1])
		}
		fmt.Fprint(l.w, "\r\x1b[K"+text)
		l.shown = true
	case s.Phase != l.phase:
		l.phase = s.Phase
		fmt.Fprintln(l.w, "datawait: "+s.text(false))
	}
}

// Say writes a sentence of its own.
func (l *Line) Say(format string, args ...any) {
	if l.w != nil {
		l.Clear()
		fmt.Fprintf(l.w, "datawait: "+format+"\n", args...)
	}
}

// Clear takes a live line away.
func (l *Line) Clear() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}

// text is the status in words; a plain line leaves out what is stale a moment later.
func (s Status) text(live bool) string {
	parts := []string{s.Phase}
	if live && s.Detail != "" {
		parts[0] = s.Detail
	}
	if s.Steps > 0 {
		parts = append(parts, fmt.Sprintf("step %d", s.Steps))
	}
	if s.Ranks > 1 {
		parts = append(parts, fmt.Sprintf("%d ranks", s.Ranks))
	}
	if s.Wait >= 0 && s.Steps > 0 {
		parts = append(parts, fmt.Sprintf("data wait %.0f %%", 100*s.Wait))
	}
	if s.SM >= 0 {
		parts = append(parts, fmt.Sprintf("SM activity %.0f %%", 100*s.SM))
	}
	if live && s.Left >= 0 {
		parts = append(parts, short(s.Left)+" left")
	} else if live {
		parts = append(parts, short(s.Elapsed))
	}
	return strings.Join(parts, " · ")
}

// short writes a duration as people say it: 45 s, 2 m 05 s.
func short(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

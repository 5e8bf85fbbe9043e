// Package survey asks a server everything that the fleet of package analysis/fleet is made of.
//
// It decides how much is asked at once: a day, and half of it again and again where the server says that this is too much. It asks
// one question at a time, so that a survey is one slow reader among a server's others.
package survey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/probe/promapi"
)

// Asker answers questions in PromQL.
type Asker interface {
	Ask(ctx context.Context, expr string, at time.Time) (promapi.Answer, error)
}

// Surveyor asks. Its zero value but for the Asker is ready.
type Surveyor struct {
	Server Asker
	Tell   func(done, of int) // questions that were answered; nil = nobody wants to know
	Sleep  func(time.Duration)

	Warnings []string // of the server, each once
	Pieces   int      // questions that were answered

	bad  int // values that are no numbers
	fits map[string]time.Duration
}

// most is how much is asked at once.
const most = 24 * time.Hour

// Bounds of what is kept.
const (
	maxRows     = 1_000_000 // of a window
	maxWarnings = 10
	warningSize = 300
)

// Two asks about a window that ends at until, and about the one before it.
func (s *Surveyor) Two(ctx context.Context, until time.Time, window time.Duration) (now, before fleet.Answers, err error) {
	s.fits = map[string]time.Duration{}
	pieces := int((window + most - 1) / most)
	all := 2 * pieces * len(fleet.Queries())
	if now, err = s.window(ctx, until, window, all); err != nil {
		return nil, nil, err
	}
	before, err = s.window(ctx, until.Add(-window), window, all)
	if s.bad > 0 {
		s.warn(fmt.Sprintf("%d values were no finite numbers; they are left out", s.bad))
	}
	return now, before, err
}

// window asks all questions about one window.
func (s *Surveyor) window(ctx context.Context, until time.Time, length time.Duration, all int) (fleet.Answers, error) {
	w := &answers{from: until.Add(-length), until: until, rows: fleet.Answers{}}
	first := map[fleet.Source]string{}
	for _, q := range fleet.Queries() {
		leads, asked := first[q.Of]
		if !asked {
			first[q.Of] = q.Name
		} else if q.Of != fleet.Any && len(w.rows[leads]) == 0 {
			continue // its source has nothing here
		}
		if err := s.pieces(ctx, q, w, all); err != nil {
			return nil, err
		}
	}
	return w.rows, nil
}

// answers are those about one window.
type answers struct {
	from, until time.Time
	rows        fleet.Answers
	severally   []stretch // in which a tenancy has several series
}

type stretch struct{ from, until time.Time }

func (w *answers) several(from, until time.Time) bool {
	return slices.ContainsFunc(w.severally, func(x stretch) bool { return x.from.Before(until) && from.Before(x.until) })
}

// pieces asks one question, about as much at once as the server allows.
func (s *Surveyor) pieces(ctx context.Context, q fleet.Query, w *answers, all int) error {
	sum := newSum(q.Flags)
	for at := w.from; at.Before(w.until); {
		piece := min(s.size(q), w.until.Sub(at))
		end := at.Add(piece)
		a, err := s.ask(ctx, q.Expr(piece, w.several(at, end)), end)
		switch {
		case errors.Is(err, promapi.ErrTooMuch) && piece > fleet.Step:
			s.fits[q.Name] = max(fleet.Step, (piece / 2).Truncate(fleet.Step))
			continue
		case err != nil:
			return fmt.Errorf("%w (about %s until %s)", err, q.Name, end.UTC().Format(time.RFC3339))
		}
		s.Pieces++
		if s.Tell != nil {
			s.Tell(min(s.Pieces, all), all)
		}
		if q.Name == fleet.QueryOverlap && len(a.Rows) > 0 && a.Rows[0].Value > 1 {
			w.severally = append(w.severally, stretch{at, end})
		}
		s.note(a)
		if !sum.add(a.Rows) {
			return fmt.Errorf("the server has more than %d rows about %s", maxRows, q.Name)
		}
		at = end
	}
	w.rows[q.Name] = sum.list()
	return nil
}

func (s *Surveyor) size(q fleet.Query) time.Duration {
	if d, ok := s.fits[q.Name]; ok {
		return d
	}
	return most
}

// patience is how often, and how long, a busy server is waited for.
var patience = []time.Duration{time.Second, 3 * time.Second, 10 * time.Second}

func (s *Surveyor) ask(ctx context.Context, expr string, at time.Time) (promapi.Answer, error) {
	for _, wait := range patience {
		a, err := s.Server.Ask(ctx, expr, at)
		if !errors.Is(err, promapi.ErrBusy) {
			return a, err
		}
		s.sleep(wait)
	}
	return s.Server.Ask(ctx, expr, at)
}

func (s *Surveyor) sleep(d time.Duration) {
	if s.Sleep == nil {
		s.Sleep = time.Sleep
	}
	s.Sleep(d)
}

// note keeps what a server said besides.
func (s *Surveyor) note(a promapi.Answer) {
	s.bad += a.NotANumber
	for _, text := range a.Warnings {
		s.warn(text)
	}
}

func (s *Surveyor) warn(text string) {
	if r := []rune(text); len(r) > warningSize {
		text = string(r[:warningSize]) + "…"
	}
	if len(s.Warnings) < maxWarnings && !slices.Contains(s.Warnings, text) {
		s.Warnings = append(s.Warnings, text)
	}
}

// sum adds up the rows of pieces: those with the same labels are one.
type sum struct {
	flags bool // a row is there or not; its value is the largest
	rows  map[string]fleet.Row
}

func newSum(flags bool) *sum { return &sum{flags, map[string]fleet.Row{}} }

// add reports whether there is room.
func (s *sum) add(rows []promapi.Row) bool {
	for _, r := range rows {
		key := keyOf(r.Labels)
		have, there := s.rows[key]
		switch {
		case !there:
			have = fleet.Row(r)
		case s.flags:
			have.Value = max(have.Value, r.Value)
		default:
			have.Value += r.Value
		}
		s.rows[key] = have
	}
	return len(s.rows) <= maxRows
}

func keyOf(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%q%q", name, labels[name])
	}
	return b.String()
}

// list returns the rows in an order that is always the same.
func (s *sum) list() []fleet.Row {
	out := make([]fleet.Row, 0, len(s.rows))
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		out = append(out, s.rows[key])
	}
	return out
}

package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/probe/promapi"
)

func nameOf(w fleet.Workload) string {
	switch {
	case w.Source == fleet.Exporter && w.Job == fleet.SharedJob:
		return "/(shared) exporter"
	case w.Namespace != "":
		return w.Namespace + "/" + w.Job
	}
	return w.Job
}

// impatient refuses questions about too much, as far as their text tells.
type impatient struct {
	Asker
	most    time.Duration
	refused int
}

func (i *impatient) Ask(ctx context.Context, expr string, at time.Time) (promapi.Answer, error) {
	for _, d := range []time.Duration{24 * time.Hour, 12 * time.Hour} {
		if d > i.most && (strings.Contains(expr, fmt.Sprintf("[%ds", int(d.Seconds()))) || strings.Contains(expr, fmt.Sprintf("[%ds:", int(d.Seconds())-1))) {
			i.refused++
			return promapi.Answer{}, fmt.Errorf("asking: %w", promapi.ErrTooMuch)
		}
	}
	return i.Asker.Ask(ctx, expr, at)
}

// scripted answers from a function.
type scripted func(expr string, at time.Time) (promapi.Answer, error)

func (s scripted) Ask(_ context.Context, expr string, at time.Time) (promapi.Answer, error) {
	return s(expr, at)
}

var end = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

func TestWhatIsTooMuchIsHalved(t *testing.T) {
	var pieces []time.Time
	s := Surveyor{Server: scripted(func(expr string, at time.Time) (promapi.Answer, error) {
		if strings.Contains(expr, "group({__name__") {
			if !strings.Contains(expr, "[43199s:") && !strings.Contains(expr, "[21599s:") { // more than 12 h
				return promapi.Answer{}, promapi.ErrTooMuch
			}
			pieces = append(pieces, at)
			return promapi.Answer{Rows: []promapi.Row{{Labels: map[string]string{}, Value: 100}}, Warnings: []string{"partial"}}, nil
		}
		return promapi.Answer{}, nil
	})}
	now, _, err := s.Two(context.Background(), end, 36*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if want := []time.Time{end.Add(-24 * time.Hour), end.Add(-12 * time.Hour), end}; !slices.EqualFunc(pieces[:3], want, time.Time.Equal) {
		t.Errorf("pieces end at %v, want %v", pieces[:3], want)
	}
	if rows := now[fleet.QuerySeen]; len(rows) != 1 || rows[0].Value != 300 {
		t.Errorf("the answers of the pieces add up to %v", rows)
	}
	if !slices.Equal(s.Warnings, []string{"partial"}) {
		t.Errorf("warnings %q", s.Warnings)
	}
}

func TestWhatIsTooMuchInTheEndIsAnError(t *testing.T) {
	asked := 0
	s := Surveyor{Server: scripted(func(string, time.Time) (promapi.Answer, error) { asked++; return promapi.Answer{}, promapi.ErrTooMuch })}
	if _, _, err := s.Two(context.Background(), end, 24*time.Hour); !errors.Is(err, promapi.ErrTooMuch) {
		t.Errorf("error %v", err)
	}
	if asked > 10 {
		t.Errorf("it asked %d times", asked)
	}
}

func TestABusyServerIsWaitedFor(t *testing.T) {
	asked, waited := 0, time.Duration(0)
	s := Surveyor{Sleep: func(d time.Duration) { waited += d }, Server: scripted(func(string, time.Time) (promapi.Answer, error) {
		if asked++; asked < 3 {
			return promapi.Answer{}, promapi.ErrBusy
		}
		return promapi.Answer{}, nil
	})}
	if _, _, err := s.Two(context.Background(), end, 24*time.Hour); err != nil || waited != 4*time.Second {
		t.Errorf("waited %s, error %v", waited, err)
	}
}

// Of a source that has nothing, one question is asked.
func TestNothingIsAskedOfWhatIsNotThere(t *testing.T) {
	asked := 0
	s := Surveyor{Server: scripted(func(string, time.Time) (promapi.Answer, error) { asked++; return promapi.Answer{}, nil })}
	if _, _, err := s.Two(context.Background(), end, 24*time.Hour); err != nil || asked != 6 {
		t.Errorf("%d questions, error %v; want 3 of each window", asked, err)
	}
}

package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// The errors that have a meaning for the one who asked. Mimir answers 429 when its queue is full (mimir, pkg/scheduler).
var (
	ErrTooMuch = errors.New("the server does not answer so much at once") // ask about less
	ErrRefused = errors.New("the server refuses the credentials")
	ErrNoAPI   = errors.New("the address does not speak Prometheus' HTTP API")
	ErrBusy    = errors.New("the server is busy") // ask again later
)

// tooMuch is an ErrTooMuch with what was said.
type tooMuch struct{ said string }

func (t *tooMuch) Error() string        { return t.said }
func (t *tooMuch) Is(target error) bool { return target == ErrTooMuch }

// explain says what an error of the client means.
func (s *Server) explain(asked context.Context, err error) error {
	var e *v1.Error
	switch {
	case asked.Err() != nil:
		return asked.Err()
	case errors.Is(err, ErrTooMuch):
		return fmt.Errorf("asking %s: %w", s.name, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("asking %s: %w", s.name, &tooMuch{fmt.Sprintf("no answer in %s", s.timeout)})
	case !errors.As(err, &e):
		return fmt.Errorf("asking %s: %w", s.name, err)
	}
	said := saidBy(e)
	switch status := statusOf(e); {
	case status == "401" || status == "403":
		return fmt.Errorf("asking %s: %w (%s)", s.name, ErrRefused, status)
	case status == "404" || status == "405" || e.Type == v1.ErrBadResponse:
		return fmt.Errorf("asking %s: %w: %s", s.name, ErrNoAPI, said)
	case status == "429":
		return fmt.Errorf("asking %s: %w: %s", s.name, ErrBusy, said)
	case status == "413" || status == "503" || status == "504" || limited(e, said):
		return fmt.Errorf("asking %s: %w", s.name, &tooMuch{said})
	}
	return fmt.Errorf("asking %s: %s", s.name, said)
}

// statusOf is the HTTP status of an answer that was no answer of the API; the client puts it at the end of its message.
func statusOf(e *v1.Error) string {
	if e.Type != v1.ErrClient && e.Type != v1.ErrServer && e.Type != v1.ErrBadResponse {
		return ""
	}
	fields := strings.Fields(e.Msg)
	if len(fields) == 0 || !strings.Contains(e.Msg, "error: ") && !strings.Contains(e.Msg, "response code ") {
		return ""
	}
	return fields[len(fields)-1]
}

// limits are words of refusals that a smaller question escapes: "query processing would load too many samples into memory"
// (prometheus, promql/engine.go, ErrTooManySamples), "exceeded" and "limit" (mimir, pkg/util/globalerror; thanos, pkg/store/limiter.go),
// "-search.maxSamplesPerQuery" (VictoriaMetrics, lib/storage and app/vmselect/netstorage).
var limits = []string{"too many", "exceed", "limit", "timed out", "timeout", "deadline", "too large", "search.max"}

func limited(e *v1.Error, said string) bool {
	if e.Type == v1.ErrTimeout {
		return true
	}
	text := strings.ToLower(said)
	for _, word := range limits {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// saidBy is what a server said, shortened: a proxy answers with a page.
func saidBy(e *v1.Error) string {
	said := e.Msg
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(e.Detail), &body) == nil && body.Error != "" {
		said += ": " + body.Error
	}
	const most = 300
	r := []rune(printable(strings.Join(strings.Fields(strings.ToValidUTF8(said, "\ufffd")), " ")))
	if len(r) > most {
		r = append(r[:most], '…')
	}
	return string(r)
}

// printable leaves out what would move a terminal's cursor or turn the direction of writing.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, s)
}

// Package promapi puts questions in PromQL to a server that speaks Prometheus' HTTP API: Prometheus itself, Thanos, Mimir,
// VictoriaMetrics.
//
// It decides how a server is reached ([Options]), what of an answer is taken ([Answer]), and what an error means for the one who
// asked ([ErrTooMuch], [ErrRefused], [ErrNoAPI]). The server is not trusted: answers are bounded in bytes and rows, and a value that
// is no finite number is counted and left out.
//
// Read [Server] and [Answer] first.
package promapi

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// MaxRows bounds the rows of an answer: a thousand GPUs with twenty jobs each in a piece of time, and a lot more.
const MaxRows = 200_000

// Server is one that can be asked.
type Server struct {
	api     v1.API
	name    string
	timeout time.Duration
}

// Row is one element of an answer.
type Row struct {
	Labels map[string]string
	Value  float64
}

// Answer is what a server said at one moment.
type Answer struct {
	Rows       []Row
	Warnings   []string // of the server: an answer may be partial (Thanos and Mimir say so here)
	NotANumber int      // rows whose value is no finite number; they are not among Rows
}

// Dial makes a server of its address. Nothing is sent yet.
func Dial(o Options) (*Server, error) {
	address, err := addressOf(o.URL)
	if err != nil {
		return nil, err
	}
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(api.Config{Address: address.String(), Client: client})
	if err != nil {
		return nil, fmt.Errorf("reading the server's address: %w", err)
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &Server{v1.NewAPI(c), address.String(), timeout}, nil
}

// Name is the server's address.
func (s *Server) Name() string { return s.name }

// Ask evaluates an expression at a moment.
func (s *Server) Ask(ctx context.Context, expr string, at time.Time) (Answer, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, warnings, _, err := s.api.Query(limited, expr, at, v1.WithTimeout(s.timeout))
	if err != nil {
		return Answer{}, s.explain(ctx, err)
	}
	a := Answer{Warnings: warnings}
	vector, ok := value.(model.Vector)
	switch {
	case value == nil:
		return Answer{}, fmt.Errorf("asking %s: %w: the answer has no result", s.name, ErrNoAPI)
	case !ok:
		return Answer{}, fmt.Errorf("asking %s: %w: the answer is a %s, and a vector was asked for", s.name, ErrNoAPI, value.Type())
	}
	if len(vector) > MaxRows {
		return Answer{}, fmt.Errorf("asking %s: %w", s.name, &tooMuch{fmt.Sprintf("the answer has %d rows, and at most %d are read", len(vector), MaxRows)})
	}
	for _, sample := range vector {
		if sample == nil {
			a.NotANumber++
			continue
		}
		v := float64(sample.Value)
		if sample.Histogram != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			a.NotANumber++
			continue
		}
		labels := make(map[string]string, len(sample.Metric))
		for name, text := range sample.Metric {
			labels[string(name)] = string(text)
		}
		a.Rows = append(a.Rows, Row{labels, v})
	}
	return a, nil
}

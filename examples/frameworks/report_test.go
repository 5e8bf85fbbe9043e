package frameworks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// report is what the checks read of report.json, by its published names.
type report struct {
	EndedBy  string `json:"ended_by"`
	ExitCode *int   `json:"exit_code"`
	Job      struct {
		Ranks          int      `json:"ranks"`
		Steps          int      `json:"steps"`
		StepIs         string   `json:"step_is"`
		FetchesPerStep *float64 `json:"fetches_per_step"`
	} `json:"job"`
	Step struct {
		Mean  *estimate `json:"mean_seconds"`
		Share *estimate `json:"data_wait_share"`
	} `json:"step"`
	Ranks []struct {
		Rank  int      `json:"rank"`
		Share *float64 `json:"data_wait_share"`
		Ended string   `json:"ended"`
	} `json:"ranks"`
	Loaders  []loader `json:"loaders"`
	Baseline *struct {
		Conclusion string `json:"conclusion"`
		Legs       map[string]struct {
			Step   *estimate `json:"step_seconds"`
			Blocks int       `json:"blocks"`
		} `json:"legs"`
	} `json:"baseline"`
	Verdicts []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
		Do    string `json:"do"`
	} `json:"verdicts"`
	Host struct {
		Foreign *float64 `json:"foreign_cores"`
	} `json:"host"`
	Reasons map[string]struct {
		Text string `json:"text"`
	} `json:"reasons"`
	Quality struct {
		Hook struct {
			Dropped  int      `json:"dropped"`
			Disabled bool     `json:"disabled"`
			Errors   []string `json:"errors"`
		} `json:"hook"`
		Warnings []string `json:"warnings"`
	} `json:"quality"`
}

type loader struct {
	Role    string    `json:"role"`
	Kind    string    `json:"kind"`
	Dataset string    `json:"dataset"`
	Workers int       `json:"workers_seen"`
	Fetches int       `json:"fetches"`
	Epochs  int       `json:"epochs"`
	Build   *estimate `json:"build_seconds_per_batch"`
}

type estimate struct {
	Value float64 `json:"value"`
}

func readReport(t *testing.T, out string) (r report) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatalf("reading the report: %v", err)
	}
	return r
}

// role returns the loader of a role; none is the zero loader. A test that hands itself over refuses two.
func (r report) role(t *testing.T, role string) (found loader) {
	for _, l := range r.Loaders {
		if l.Role != role {
			continue
		}
		if found.Role != "" && t != nil {
			t.Errorf("two loaders of role %s: %+v", role, r.Loaders)
		}
		found = l
	}
	return found
}

// checkHook wants that the hook saw everything and nothing went wrong inside it.
func (r report) checkHook(t *testing.T) {
	t.Helper()
	if h := r.Quality.Hook; h.Disabled || h.Dropped > 0 || len(h.Errors) > 0 {
		t.Errorf("the hook was in trouble: %+v", h)
	}
}

// foreign is how many cores were busy with something else; where that is unknown nothing is excused.
func (r report) foreign() float64 {
	if r.Host.Foreign == nil {
		return 0
	}
	return *r.Host.Foreign
}

// value is nil where an estimate is unknown.
func (e *estimate) value() *float64 {
	if e == nil {
		return nil
	}
	return &e.Value
}

func value(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.4f", *v)
}

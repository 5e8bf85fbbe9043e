package json

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
	"github.com/datawait/datawait/report/internal/sample"
)

// Every sample gives a document that matches the schema, in which each null has a reason.
func TestDocuments(t *testing.T) {
	for _, c := range sample.All() {
		t.Run(c.Name, func(t *testing.T) {
			c.Result.Schema = analysis.Schema
			b, err := Marshal(c.Result)
			if err != nil {
				t.Fatal(err)
			}
			var doc map[string]any
			if err := json.Unmarshal(b, &doc); err != nil {
				t.Fatal(err)
			}
			reasons := doc["reasons"].(map[string]any)
			delete(doc, "reasons")
			maps.DeleteFunc(reasons, func(path string, _ any) bool { return strings.Contains(path, ".arguments") })
			nulls := 0
			eachNull("$", doc, func(path string) {
				nulls++
				if r, ok := reasons[path].(map[string]any); !ok || r["text"] == "" || r["kind"] == "" {
					t.Errorf("%s is null and has no reason", path)
				}
			})
			if nulls != len(reasons) {
				t.Errorf("%d nulls, %d reasons", nulls, len(reasons))
			}
		})
	}
}

func eachNull(path string, v any, f func(string)) {
	switch v := v.(type) {
	case nil:
		f(path)
	case map[string]any:
		for k, x := range v {
			if k == "arguments" {
				continue // the job's own values: a null there is its None
			}
			eachNull(member(path, k), x, f)
		}
	case []any:
		for i, x := range v {
			eachNull(fmt.Sprintf("%s[%d]", path, i), x, f)
		}
	}
}

func TestWhatIsMissingIsNull(t *testing.T) {
	r := &analysis.Result{
		Schema: analysis.Schema,
		Step:   analysis.Step{P50WaitSeconds: unit.Some(math.NaN()), P99WaitSeconds: unit.NotSupported[float64]("no clock"), MeanSeconds: unit.Some(stat.Estimate{Value: 1, High: math.Inf(1)})},
		Ranks:  []analysis.Rank{{GPUUUID: unit.Broken[string]("NVML said no")}},
		Job:    analysis.Job{WallSeconds: unit.Some(0.0)},
	}
	b, err := Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Reasons map[string]Reason `json:"reasons"`
		Job     struct {
			Wall    *float64 `json:"wall_seconds"`
			Command []string `json:"command"`
		} `json:"job"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Reason{
		"$.step.p50_wait_seconds": {"failed", "the result is not a finite number"}, "$.step.p99_wait_seconds": {"unsupported", "no clock"},
		"$.step.mean_seconds.high": {"failed", "the result is not a finite number"}, "$.ranks[0].gpu_uuid": {"failed", "NVML said no"},
		"$.baseline": {"unknown", "no cached-data test ran"}, "$.step.handoff_share": {"unknown", "nobody measured it"},
	} {
		if got := doc.Reasons[path]; got != want {
			t.Errorf("reason of %s: got %v, want %v", path, got, want)
		}
	}
	if doc.Job.Wall == nil || *doc.Job.Wall != 0 {
		t.Error("a measured 0 must be 0")
	}
	if doc.Job.Command == nil {
		t.Error("an empty list must be [], not null")
	}
	if strings.Contains(string(b), "NaN") {
		t.Error("NaN in the document")
	}
}

func TestPath(t *testing.T) {
	for name, want := range map[string]string{"gpus": "$.gpus", "host-cached": "$['host-cached']", "it's": `$['it\'s']`, "": "$['']", "9": "$['9']"} {
		if got := member("$", name); got != want {
			t.Errorf("member(%q): got %s, want %s", name, got, want)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	r := sample.Retail()
	for b.Loop() {
		if _, err := Marshal(r); err != nil {
			b.Fatal(err)
		}
	}
}

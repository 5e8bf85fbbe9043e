package json

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
	"github.com/datawait/datawait/report/internal/sample"
)

// A report that is read back and written again is the same to the last byte: no value, null or reason is lost or made up.
func TestAReportReadBackIsTheSame(t *testing.T) {
	for _, c := range sample.All() {
		c.Result.Schema = analysis.Schema
		first, err := Marshal(c.Result)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Unmarshal(first)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		again, err := Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != "hostile" && !bytes.Equal(first, again) { // an estimate with a hole comes back as unknown
			t.Errorf("%s changed when it was read back", c.Name)
		}
	}
}

// A null inside an estimate must not come back as 0, nor one in the place of a plain number.
func TestNullNeverComesBackAsZero(t *testing.T) {
	r := &analysis.Result{Schema: analysis.Schema, Loaders: []analysis.Loader{{WaitSeconds: math.NaN()}}}
	r.Step.MeanSeconds = unit.Some(stat.Estimate{Value: 1, Low: 0, High: math.Inf(1)})
	r.Step.P50WaitSeconds = unit.NotSupported[float64]("no clock")
	b, err := Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if back.Step.MeanSeconds.IsKnown() || !math.IsNaN(back.Loaders[0].WaitSeconds) {
		t.Errorf("%+v, %v", back.Step.MeanSeconds, back.Loaders[0].WaitSeconds)
	}
	if p := back.Step.P50WaitSeconds; p.State() != unit.Unsupported || p.Why() != "no clock" {
		t.Errorf("%v %q", p.State(), p.Why())
	}
}

// What an earlier version did not write is unknown, and what a later one added does no harm.
func TestOtherVersionsAreRead(t *testing.T) {
	r, err := Unmarshal([]byte(`{"schema":"datawait.report/1","job":{"steps":7,"new":[1]},"newer":{"x":null},"gpus":[{"uuid":"GPU-1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Job.Steps != 7 || r.Step.MeanSeconds.IsKnown() || r.Step.MeanSeconds.Why() != notSaid || r.GPUs[0].SMActiveRatio.IsKnown() {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "unexpected end", "[]": "cannot unmarshal", "{}": "no schema", `{"schema":"datawait.report/2"}`: "this version reads datawait.report/1",
		`{"schema":"datawait.compare/1"}`: "this version reads", `{"schema":"datawait.report/1","job":7}`: "cannot unmarshal",
	} {
		if r, err := Unmarshal([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	b, err := Marshal(sample.Retail())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"schema":"datawait.report/1","reasons":{"$.step.mean_seconds.value":{"kind":"failed","text":"x"}},"step":{"mean_seconds":{"value":null}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Unmarshal(b)
		if err != nil {
			return
		}
		var doc any
		if out, err := newEncoder().document(valueOf(r)); err != nil || json.Unmarshal(out, &doc) != nil {
			t.Errorf("it was read and cannot be written: %v", err)
		}
	})
}

func valueOf(r *analysis.Result) reflect.Value { return reflect.ValueOf(r).Elem() }

package unit

import (
	"encoding/json"
	"math"
	"testing"
)

func TestFourValuesStayFour(t *testing.T) {
	for _, c := range []struct {
		name  string
		value Maybe[int]
		state Availability
		word  string
		known bool
	}{
		{"a measured zero", Some(0), Known, "known", true},
		{"nobody set it", Maybe[int]{}, Unknown, "unknown", false},
		{"unknown", None[int]("nobody looked"), Unknown, "unknown", false},
		{"unsupported", NotSupported[int]("no such counter"), Unsupported, "unsupported", false},
		{"failed", Broken[int]("read error"), Failed, "failed", false},
	} {
		v, ok := c.value.Get()
		_, why, missing := c.value.Missing()
		if ok != c.known || missing == c.known || c.value.IsKnown() != c.known || c.value.State() != c.state || c.state.String() != c.word {
			t.Errorf("%s: %d, %v, %v %q", c.name, v, ok, c.value.State(), why)
		}
		if c.known && why != "" || c.value.Why() != why {
			t.Errorf("%s: a reason %q", c.name, why)
		}
		if got := c.value.Or(7); c.known != (got == 0) {
			t.Errorf("%s: Or gives %d", c.name, got)
		}
	}
}

func TestMissingIsNullAndNeverZero(t *testing.T) {
	type document struct {
		A, B Maybe[float64]
	}
	text, err := json.Marshal(document{A: Some(0.0), B: Broken[float64]("read error")})
	if err != nil || string(text) != `{"A":0,"B":null}` {
		t.Fatalf("%s, %v", text, err)
	}
	back := document{B: Some(3.0)}
	if err := json.Unmarshal(text, &back); err != nil || !back.A.IsKnown() || back.B.IsKnown() {
		t.Errorf("read back as %+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"A":"fast"}`), &back); err == nil || back.A.IsKnown() {
		t.Errorf("a word was read as a number: %+v, %v", back, err)
	}
}

func TestFloatRefusesWhatNoReportMayShow(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if Float(v, "no steps").IsKnown() {
			t.Errorf("%v is known", v)
		}
	}
	if v, ok := Float(0, "").Get(); !ok || v != 0 {
		t.Error("zero is a number")
	}
}

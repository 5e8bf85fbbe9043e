//go:build linux && cgo

package dcgm

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
	"github.com/datawait/datawait/probe/recording"
)

// valueless is what comes in the place of a value, or looks like one.
var valueless = []behaviour{
	{"no-sample-yet", "before the first sample there is a reason and no zero", one + "late by=10s\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			says(t, why(o, 0), "no sample of SM activity: none has come yet")
			if n := len(o.Windows(0)); n > 0 {
				t.Errorf("%d windows", n)
			}
		}},
	{"first-sample", "the first sample of a pair is nothing and the second counts", one + "first-blank\n", plan{For: 2 * time.Second},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 8); quiet(t, o, 4) }},
	plainBlank("not-permissioned", "a power that the engine may not read is unknown, and the counters stay"),
	plainBlank("not-supported", "a power that the GPU does not tell is unknown, and the counters stay"),
	plainBlank("blank", "a power without a reason is unknown, and the counters stay"),
	{"gpm-field-blank", "a blank without a reason points to the engine's log", one + "value gpu=0 field=1002 v=blank\n", plan{},
		func(t *testing.T, o standin.Outcome) { unknown(t, o, "SM activity: blank", "log of the host engine") }},
	{"gpm-field-blank", "a blank with a reason gives it", one + "value gpu=0 field=1002 v=not-permissioned\n", plan{},
		func(t *testing.T, o standin.Outcome) { unknown(t, o, "SM activity: not permitted to the host engine") }},
	{"gpm-field-blank", "what is blank for a while is told for that while", one + "value gpu=0 field=1002 v=blank at=1s for=2s\n", plan{For: 5 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			says(t, why(o, 0), "blank")
			quiet(t, o, len(o.Polls)-3)
			for _, w := range o.Windows(0) {
				if sm, known := w.Values["sm"]; known && sm != 0.5 {
					t.Errorf("SM activity %v", sm)
				}
			}
		}},
	{"stale-sample", "a sample that another client has left is not of this run", one + "left age=200ms\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 5)
			for _, w := range o.Windows(0) {
				if w.End < o.Polls[0].At-400e6 {
					t.Errorf("from before it began: %+v", w)
				}
			}
		}},
	{"stale-sample", "a sample that is left and never followed is no reading", one + "left age=1s\nfrozen\n", plan{For: 4500 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) {
			if n := len(o.Windows(0)); n > 0 {
				t.Errorf("%d windows", n)
			}
			if why(o, 0) == "" {
				t.Error("no reason")
			}
		}},
	{"counters-stopped", "zero while a kernel is resident is not trusted, and the reason is given", one + "value gpu=0 field=1002 v=0\nvalue gpu=0 field=1004 v=0\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			untrusted(t, o, 1)
			says(t, why(o, 0), "the profiling counters have stopped")
		}},
	{"multiplexed", "of one letter only one group is asked for", one + "multiplex\n", plan{},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 5) }},
	{"multiplexed", "zeros that another client brings are not taken for idleness", one + "multiplex\nwatcher field=1006\n", plan{For: 2500 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) { untrusted(t, o, 0.4); says(t, why(o, 0), "SM") }},
	{"status-of-a-sample", "a status of the sample is told and not its blank", one + "status gpu=0 field=1002 code=-18\n", plan{},
		func(t *testing.T, o standin.Outcome) { unknown(t, o, "the GPU is lost") }},
}

func plainBlank(v, sentence string) behaviour {
	return behaviour{"plain-field-blanks", sentence, one + "value gpu=0 field=155 v=" + v + "\nvalue gpu=0 field=203 v=" + v + "\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 5)
			for _, w := range o.Windows(0) {
				_, power := w.Values["power"]
				_, resident := w.Values["resident"]
				if _, clock := w.Values["clock"]; power || resident || !clock {
					t.Errorf("window %+v", w)
				}
			}
		}}
}

// unknown fails unless SM activity is unknown throughout, for this reason.
func unknown(t *testing.T, o standin.Outcome, words ...string) {
	t.Helper()
	for _, w := range o.Windows(0) {
		if sm, known := w.Values["sm"]; known {
			t.Errorf("SM activity %v", sm)
		}
	}
	says(t, why(o, 0), words...)
}

// untrusted fails unless so much of the windows that read 0 is marked, and there are at least that many of all.
func untrusted(t *testing.T, o standin.Outcome, share float64) {
	t.Helper()
	marked, all := 0, o.Windows(0)
	for _, w := range all {
		if w.Flags&recording.GPUUntrusted != 0 {
			marked++
		} else if w.Values["sm"] == 0 {
			t.Errorf("idle: %+v", w)
		}
	}
	if len(all) < 5 || float64(marked) < share*float64(len(all)) {
		t.Errorf("%d of %d windows are untrusted", marked, len(all))
	}
}

func TestEveryBlankIsNothingAndSaysWhy(t *testing.T) {
	reasons := []string{"blank", "not found", "not supported", "not permitted"}
	for i, reason := range reasons {
		for name, r := range map[string]row{
			"double": {us: 1, double: true, bits: math.Float64bits(blankDouble + float64(i))},
			"int64":  {us: 1, bits: uint64(blank64 + i)},
			"int32":  {us: 1, bits: uint64(blank32 + i)},
		} {
			if v := r.value(); v.number == v.number || !strings.Contains(v.why, reason) || v.impossible {
				t.Errorf("%s %d: %+v", name, i, v)
			}
		}
	}
	for _, s := range []string{"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"} {
		if got := decodeString(s); got != "" {
			t.Errorf("%s is %q", s, got)
		}
	}
	if v := (row{us: 1, double: true, bits: math.Float64bits(blankDouble * 100)}).value(); v.number == v.number { // as an exporter once showed it
		t.Errorf("a multiple of a blank is %v", v.number)
	}
	for _, bits := range []float64{-0.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if v := (row{us: 1, double: true, bits: math.Float64bits(bits)}).value(); v.number == v.number || !v.impossible {
			t.Errorf("%v is %+v", bits, v)
		}
	}
	if v := (row{us: 1, double: true, bits: math.Float64bits(0)}).value(); v.number != 0 || v.why != "" {
		t.Errorf("0 is %+v", v)
	}
	if v := (row{us: 1, bits: 25e9}).value(); v.number != 25e9 { // bytes/s beyond 32 bits
		t.Errorf("25 GB/s is %+v", v)
	}
}

func TestEveryStatusOfASampleIsNothingAndSaysWhy(t *testing.T) {
	for status, reason := range map[int]string{-6: "not supported", -14: "none has come", -15: "stale", -16: "not watched", -17: "not permitted", -18: "lost",
		-21: "-21", -29: "-29", -33: "-33", -36: "-36", -37: "-37", -38: "-38", -54: "paused"} {
		v := row{us: 1, status: status, bits: math.Float64bits(0.5), double: true}.value()
		if v.number == v.number || !strings.Contains(v.why, reason) {
			t.Errorf("status %d: %+v", status, v)
		}
	}
}

package track

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func entry(key string, predicted, low, high, measured float64) Entry {
	return Entry{Schema: Schema, Key: key, Fix: "more-workers", Metric: "step_seconds", Predicted: predicted, Low: low, High: high, Measured: measured}
}

func lines(t *testing.T, entries ...Entry) string {
	t.Helper()
	var b strings.Builder
	for _, e := range entries {
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
	}
	return b.String()
}

// Three predictions: exact, 10 % too low within its interval, 50 % too low outside. The median of 0, 0.1 and 0.5 is 0.1.
func TestWhatIsQuotedIsArithmetic(t *testing.T) {
	text := lines(t, entry("a", 1, 0.8, 1.2, 1), entry("b", 1, 0.8, 1.2, 1.1), entry("c", 1, 0.8, 1.2, 1.5))
	entries, damaged, err := Read(strings.NewReader(text))
	if err != nil || damaged != 0 || len(entries) != 3 {
		t.Fatalf("%d entries, %d damaged, %v", len(entries), damaged, err)
	}
	r := Summarise(entries, false)
	m, _ := r.MedianError.Get()
	if w, _ := r.MedianWidth.Get(); r.Checked != 3 || r.Within != 2 || math.Abs(m-0.1) > 1e-9 || math.Abs(w-0.4) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if r := Summarise(entries, true); r != nil {
		t.Errorf("real predictions count among emulated ones: %+v", r)
	}
}

func TestAPredictionCheckedTwiceCountsOnce(t *testing.T) {
	entries, _, _ := Read(strings.NewReader(lines(t, entry("a", 1, 0.8, 1.2, 2), entry("b", 1, 0.8, 1.2, 1), entry("a", 1, 0.8, 1.2, 1))))
	if r := Summarise(entries, false); len(entries) != 2 || r.Within != 2 {
		t.Errorf("%d entries, %+v: the last word on a prediction counts", len(entries), r)
	}
}

func TestDamagedLinesArePassedOver(t *testing.T) {
	good := lines(t, entry("a", 1, 0.8, 1.2, 1))
	for name, bad := range map[string]string{
		"a torn line": good[:40], "no JSON": "hello", "zeros": "\x00\x00\x00", "a later version": strings.Replace(good, "record/1", "record/2", 1),
		"no interval": strings.Replace(strings.Replace(good, `"low":0.8`, `"low":1`, 1), `"high":1.2`, `"high":1`, 1), "measured nothing": strings.Replace(good, `"measured":1`, `"measured":0`, 1),
		"infinite": strings.Replace(good, `"measured":1`, `"measured":1e999`, 1), "a line too long": `{"key":"` + strings.Repeat("x", longest) + `"}`, "inside out": strings.Replace(good, `"low":0.8`, `"low":1.1`, 1),
	} {
		text := good + strings.TrimSuffix(bad, "\n") + "\n\n" + lines(t, entry("z", 1, 0.8, 1.2, 1))
		entries, damaged, err := Read(strings.NewReader(text))
		if err != nil || damaged != 1 || len(entries) != 2 || entries[1].Key != "z" {
			t.Errorf("%s: %d entries, %d damaged, %v", name, len(entries), damaged, err)
		}
	}
}

func TestALineThatNoCheckWritesIsRefused(t *testing.T) {
	for _, e := range []Entry{{}, entry("a", 1, 1, 1, 1), entry("a", 1, 0.8, 1.2, math.NaN()), entry("", 1, 0.8, 1.2, 1)} {
		if line, err := e.Line(); err == nil {
			t.Errorf("%s", line)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":"datawait.track-record/1","key":"a","predicted":1,"low":0.8,"high":1.2,"measured":1}`))
	f.Add([]byte("\n{}\n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, damaged, err := Read(bytes.NewReader(b))
		if err != nil || len(entries)+damaged > bytes.Count(b, []byte("\n"))+1 {
			t.Errorf("%d entries and %d damaged lines of %d bytes, %v", len(entries), damaged, len(b), err)
		}
		if r := Summarise(entries, false); r != nil && (r.Within > r.Checked || !r.MedianError.IsKnown()) {
			t.Errorf("%+v", r)
		}
	})
}

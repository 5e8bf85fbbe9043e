package analysis

import (
	"math"
	"testing"
)

// train feeds steps of these ms outside next(), after 5 ms of waiting each, and returns what is found of their live time.
func train(outside func(n int) (ms int64, validates bool)) (st stalls, live int64) {
	at := int64(1e9)
	for n := range 200 {
		ms, validates := outside(n + 1)
		s := step{begin: at, end: at + (ms+5)*1e6, wait: 5e6, live: true, validates: validates, breaks: validates}
		if validates {
			s.aside = (ms - 20) * 1e6
		}
		st.see(&s)
		live += s.end - s.begin
		at = s.end
	}
	return st, live
}

func TestAStallEvery25StepsIsFound(t *testing.T) {
	st, live := train(func(n int) (int64, bool) {
		if n%25 == 0 {
			return 620, true
		}
		return 20, false
	})
	f := st.found(live)
	if f.N != 8 || f.Every != 25 || !f.Regular || f.Validation != 8 || f.Saves != 0 {
		t.Errorf("%+v", f)
	}
	// 8 × 0.6 s beyond the usual step, of 8 × 0.6 + 200 × 0.025 s.
	if math.Abs(f.Seconds-0.6) > 1e-9 || math.Abs(f.Share-4.8/9.8) > 1e-9 || math.Abs(f.PerStep-4.8/200) > 1e-9 {
		t.Errorf("%+v", f)
	}
}

// Of a validation loop of 0.6 s that waits for its data for 10 ms, all but that is work.
func TestAValidationThatComputesIsNoStall(t *testing.T) {
	var st stalls
	for n := range 200 {
		s := step{begin: int64(n) * 1e9, end: int64(n)*1e9 + 20e6, live: true}
		if n%25 == 24 {
			s.end, s.validates, s.aside = s.begin+620e6, true, 10e6
		}
		st.see(&s)
	}
	if f := st.found(10e9); f.N != 0 {
		t.Errorf("%+v", f)
	}
}

func TestStallsAtNoRegularDistanceAreNotPeriodic(t *testing.T) {
	at := map[int]bool{40: true, 45: true, 90: true, 92: true, 150: true, 199: true}
	st, live := train(func(n int) (int64, bool) {
		if at[n] {
			return 620, false
		}
		return 20, false
	})
	if f := st.found(live); f.N != 6 || f.Regular {
		t.Errorf("%+v", f)
	}
}

func TestStepsThatVaryAreNoStalls(t *testing.T) {
	st, live := train(func(n int) (int64, bool) { return 20 + int64(n*7%30), false })
	if f := st.found(live); f.N != 0 || f.Share != 0 {
		t.Errorf("%+v", f)
	}
}

// Waiting for data, however long, is no stall: it lies inside next().
func TestALongWaitIsNoStall(t *testing.T) {
	var st stalls
	for n := range 100 {
		s := step{begin: int64(n) * 1e9, end: int64(n)*1e9 + 900e6, wait: 880e6, live: true}
		st.see(&s)
	}
	if f := st.found(100e9); f.N != 0 {
		t.Errorf("%+v", f)
	}
}

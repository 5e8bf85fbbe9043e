package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestT975(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 2: 4.303, 10: 2.228, 30: 2.042, 40: 2.0211, 60: 2.0003, 120: 1.9799, 100000: 1.96} {
		if got := T975(freedom); math.Abs(got-want) > 0.001 {
			t.Errorf("T975(%d) = %v, want %v", freedom, got, want)
		}
	}
	if !math.IsInf(T975(0), 1) {
		t.Error("an interval without degrees of freedom has a width")
	}
}

func TestMean(t *testing.T) {
	i, ok := Mean([]float64{1, 2, 3, 4})
	if want := 3.182 * math.Sqrt(5.0/3/4); !ok || i.Value != 2.5 || math.Abs(i.High-2.5-want) > 1e-9 {
		t.Errorf("Mean = %+v, half width wanted %v", i, want)
	}
	if _, ok := Mean([]float64{1}); ok {
		t.Error("one observation has a spread")
	}
}

// bursty makes pairs as a loader-bound job does: one long wait every cycle steps.
func bursty(r *rand.Rand, n, cycle int) (num, den []float64) {
	for i := range n {
		w := 0.1 * r.Float64()
		if i%cycle == cycle-1 {
			w = float64(cycle) * (1 + r.ExpFloat64()) / 2
		}
		num, den = append(num, w), append(den, w+1)
	}
	return num, den
}

// TestRatioCovers: of many intervals, about 95 % hold the truth, bursts or not.
func TestRatioCovers(t *testing.T) {
	for _, cycle := range []int{1, 8, 32} {
		r := rand.New(rand.NewPCG(uint64(cycle), 5))
		num, den := bursty(r, 400_000, cycle)
		truth := sum(num) / sum(den)
		const trials, n = 400, 1000
		held := 0
		for k := range trials {
			ratio := Batch(2 * cycle)
			for i := range n {
				ratio.Add(num[(k*n+i)%len(num)], den[(k*n+i)%len(den)])
			}
			if i, ok := ratio.Interval(); ok && i.Low <= truth && truth <= i.High {
				held++
			}
		}
		if share := float64(held) / trials; share < 0.90 || share > 0.99 {
			t.Errorf("cycle %d: %.1f %% of the intervals hold the truth", cycle, 100*share)
		}
	}
}

func TestRatioSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	ratio := Batch(3)
	var num, den float64
	for i := range 5000 {
		a, b := r.Float64(), r.Float64()
		ratio.Add(a, b)
		num, den = num+a, den+b
		if i == 1000 && len(ratio.batches) > ratioBatches {
			t.Errorf("%d batches", len(ratio.batches))
		}
	}
	a, b := ratio.Sums()
	if math.Abs(a-num) > 1e-9 || math.Abs(b-den) > 1e-9 || ratio.N() != 5000 {
		t.Errorf("sums %v, %v of %d; want %v, %v", a, b, ratio.N(), num, den)
	}
	if _, ok := Batch(10).Interval(); ok {
		t.Error("nothing has an interval")
	}
}

// TestCombine: ranks that wait for one another are one witness, however many they are.
func TestCombine(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	num, den := bursty(r, 2000, 4)
	make1 := func() *Ratio {
		x := Batch(8)
		for i := range num {
			x.Add(num[i], den[i])
		}
		return x
	}
	one, _ := make1().Interval()
	all, ok := Combine(make1(), make1(), make1(), make1()).Interval()
	if !ok || math.Abs(all.Value-one.Value) > 1e-12 || math.Abs(all.Half()-one.Half()) > 1e-9 {
		t.Errorf("four alike: %+v, one alone: %+v", all, one)
	}
	if Combine() != nil {
		t.Error("nobody says something")
	}
	short := Batch(8)
	short.Add(1, 2)
	if i, ok := Combine(make1(), short).Value(); !ok || math.IsNaN(i) {
		t.Error("a rank of one step spoils the sum")
	}
}

// TestQuantilesOfDurations are those of the sorted list, whoever holds which part of it.
func TestQuantilesOfDurations(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	for range 300 {
		var want []int64
		var all Durations
		most := int64(1) << r.IntN(36)
		for range 1 + r.IntN(3) {
			var some Durations
			for range 1 + r.IntN(60) {
				ns := r.Int64N(most)
				want = append(want, ns)
				some.Add(ns)
			}
			all.Join(&some)
		}
		slices.Sort(want)
		q := r.Float64()
		k := min(max(int(math.Ceil(q*float64(len(want))-1e-9))-1, 0), len(want)-1)
		if got, ok := all.Quantile(q); !ok || got != want[k] {
			t.Fatalf("Quantile(%v) of %v = %v, want %v", q, want, got, want[k])
		}
	}
	var many Durations
	for i := range int64(100_000) {
		many.Add(i * 7919 % 100_000 * 100_000)
	}
	for _, q := range []float64{0, 0.25, 0.5, 0.99, 1} {
		if got, _ := many.Quantile(q); got != max(int64(q*100_000)-1, 0)*100_000 {
			t.Errorf("quantile %v of a hundred thousand is %d", q, got)
		}
	}
	if _, ok := (&Durations{}).Quantile(0.5); ok {
		t.Error("nothing has a median")
	}
}

func TestFit(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	held := 0
	for range 300 {
		var x, y []float64
		for range 50 {
			u := r.Float64()
			x, y = append(x, u), append(y, 0.6-0.5*u+0.1*r.NormFloat64())
		}
		l, ok := Fit(x, y)
		if ok && l.Zero.Low <= 0.6 && 0.6 <= l.Zero.High && l.One.Low <= 0.1 && 0.1 <= l.One.High {
			held++
		}
	}
	if held < 250 { // both at once: a little below 95 %
		t.Errorf("%d of 300 lines hold the truth", held)
	}
	if _, ok := Fit([]float64{1, 1, 1}, []float64{1, 2, 3}); ok {
		t.Error("a line through points above one another")
	}
}

func TestDifference(t *testing.T) {
	i, ok := Difference([]float64{3, 3.1, 2.9}, []float64{1, 1.1})
	if !ok || math.Abs(i.Value-1.95) > 1e-9 || i.Low > 1.95 || i.Half() <= 0 {
		t.Errorf("Difference = %+v", i)
	}
	if _, ok := Difference([]float64{1}, []float64{2}); ok {
		t.Error("two single observations have a spread")
	}
	if i, ok := Difference([]float64{1, 1.2}, []float64{2}); !ok || i.Half() <= 0 {
		t.Errorf("a single observation is taken for exact: %+v", i)
	}
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

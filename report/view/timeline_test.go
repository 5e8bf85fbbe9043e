package view

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/datawait/datawait/analysis"
)

// A stall of one window keeps its minimum in its column, however many windows the column folds.
//
//	windows  |▇▇▇▇▇▇▇▇▇▁▇▇▇▇▇▇▇▇▇▇|   columns  |  0  |  1  |
//	                  ^ 0.05                    |0.05…0.9|0.9|
func TestStallsSurvive(t *testing.T) {
	var windows []analysis.Window
	for i := range 1000 {
		sm := 0.9
		if i == 333 {
			sm = 0.05
		}
		windows = append(windows, analysis.Window{Begin: float64(i), End: float64(i + 1), SM: sm})
	}
	px := reduce(windows, nil, 0, 1000, 10)
	if p := px[3]; p.SMMin != 0.05 || p.SMMax != 0.9 {
		t.Errorf("column 3: got %+v", p)
	}
	if p := px[4]; p.SMMin != 0.9 {
		t.Errorf("column 4: got %+v", p)
	}
}

// A window that stands for several shows the least and the most of them.
func TestFoldedWindowsKeepTheirExtremes(t *testing.T) {
	px := reduce([]analysis.Window{{Begin: 0, End: 1, SM: 0.5}, {Begin: 1, End: 9, SM: 0.6, Folded: 8, Low: 0.1, High: 0.9}}, nil, 0, 10, 5)
	if p := px[0]; p.SMMin != 0.1 || p.SMMax != 0.9 || math.Abs(p.SMMean-0.55) > 1e-9 {
		t.Errorf("column 0: got %+v", p)
	}
	if p := px[4]; !p.SMKnown || p.SMMin != 0.1 || math.Abs(p.SMMean-0.6) > 1e-9 {
		t.Errorf("column 4: got %+v", p)
	}
}

// reduceSlowly looks at every window for every column: the obviously right twin of reduce.
func reduceSlowly(windows []analysis.Window, waits []analysis.Interval, begin, end float64, n int) []Pixel {
	px := make([]Pixel, n)
	width := (end - begin) / float64(n)
	overlap := func(a, b float64, i int) float64 {
		left := begin + float64(i)*width
		return min(b, left+width) - max(a, left)
	}
	for i := range px {
		sum, seconds := 0.0, 0.0
		for _, w := range windows {
			if o := overlap(w.Begin, w.End, i); o > 0 && !math.IsNaN(w.SM) {
				p := &px[i]
				if !p.SMKnown {
					*p = Pixel{SMKnown: true, SMMin: w.SM, SMMax: w.SM}
				}
				p.SMMin, p.SMMax = min(p.SMMin, w.SM), max(p.SMMax, w.SM)
				sum, seconds = sum+w.SM*o, seconds+o
			}
		}
		if seconds > 0 {
			px[i].SMMean = sum / seconds
		}
		for _, w := range waits {
			if o := overlap(w.Begin, w.End, i); o > 0 {
				px[i].Wait = min(1, px[i].Wait+o/width)
			}
		}
	}
	return px
}

func TestReduceIsThatOfItsTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var windows []analysis.Window
		var waits []analysis.Interval
		for at := random.Float64()*4 - 2; at < 10; {
			length := random.ExpFloat64() / 3
			sm := random.Float64()
			if random.IntN(5) == 0 {
				sm = math.NaN()
			}
			windows, waits = append(windows, analysis.Window{Begin: at, End: at + length, SM: sm}), append(waits, analysis.Interval{Begin: at, End: at + length/2})
			at += length + random.Float64()/2
		}
		got, want := reduce(windows, waits, 0, 9, 37), reduceSlowly(windows, waits, 0, 9, 37)
		for i := range got {
			if math.Abs(got[i].SMMean-want[i].SMMean) > 1e-9 || math.Abs(got[i].Wait-want[i].Wait) > 1e-9 || got[i].SMMin != want[i].SMMin || got[i].SMMax != want[i].SMMax || got[i].SMKnown != want[i].SMKnown {
				t.Fatalf("column %d: got %+v, want %+v", i, got[i], want[i])
			}
		}
	}
}

// Times that are no numbers, reversed or far outside change nothing and take no time.
func TestReduceOddTimes(t *testing.T) {
	odd := []analysis.Interval{{Begin: math.NaN(), End: 1}, {Begin: 0, End: math.Inf(1)}, {Begin: 2, End: 1}, {Begin: -5, End: -1}, {Begin: 1e300, End: 1e301}}
	for _, p := range reduce(nil, odd, 0, 1, 10) {
		if p.Wait != 0 || p.SMKnown {
			t.Fatalf("got %+v", p)
		}
	}
	whole := reduce(nil, []analysis.Interval{{Begin: -1e300, End: 1e300}}, 0, 1, 10)
	if whole[0].Wait < 0.999 || whole[9].Wait < 0.999 {
		t.Errorf("an interval around everything fills every column: got %+v", whole)
	}
}

func BenchmarkReduce(b *testing.B) {
	waits := make([]analysis.Interval, 1_000_000)
	for i := range waits {
		waits[i] = analysis.Interval{Begin: float64(i), End: float64(i) + 0.5}
	}
	for b.Loop() {
		reduce(nil, waits, 0, 1e6, columns)
	}
}

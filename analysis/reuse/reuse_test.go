package reuse

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// hash spreads names over 32 bits, as the hook's does.
func hash(name int) uint32 { return uint32(name) * 2654435769 }

// epochs reads n files in a fresh order in each of several epochs, one a millisecond, and samples by hash.
func epochs(n, epochs, halvings int, r *rand.Rand) Sample {
	s, t := Sample{Halvings: halvings}, int64(0)
	for e := range epochs {
		for _, name := range r.Perm(n) {
			t += 1e6
			if uint64(hash(name)) < Limit(halvings) {
				s.Readings = append(s.Readings, Reading{T: t, Name: hash(name), Epoch: uint32(e)})
			}
		}
	}
	return s
}

// TestHitsOfFreshOrders: of a cache that holds the fraction c of a set read in a fresh order every epoch, LRU hits
// c + (1−c)·ln(1−c), in the whole stream as in a sample of an eighth.
func TestHitsOfFreshOrders(t *testing.T) {
	const n = 20000
	for _, halvings := range []int{0, 3} {
		r, ok := Study([]Sample{epochs(n, 5, halvings, rand.New(rand.NewPCG(1, 2)))})
		if !ok {
			t.Fatal("no readings")
		}
		for _, c := range []float64{0.1, 0.25, 0.5, 0.75, 0.9, 1} {
			want := c + (1-c)*math.Log(1-c)
			if c == 1 {
				want = 1
			}
			if got, ok := r.Hits(c * n); !ok || math.Abs(got-want) > 0.02 {
				t.Errorf("halvings %d: a cache of %v hits %.3f, want %.3f", halvings, c, got, want)
			}
		}
		if all, low, high, ok := r.All(); !ok || low > n || high < n || math.Abs(all-n) > n/10 {
			t.Errorf("halvings %d: %v names (%v to %v), want %v", halvings, all, low, high, n)
		}
		if math.Abs(r.Again-0.8) > 0.001 || r.PerEpoch != 1 || r.Epochs != 5 || !r.Complete {
			t.Errorf("halvings %d: %+v", halvings, r)
		}
	}
}

// TestDistancesAgreeWithAStack: the tree counts what a list with the latest name in front counts.
func TestDistancesAgreeWithAStack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var s Sample
		for i := range 300 {
			s.Readings = append(s.Readings, Reading{T: int64(i), Name: hash(random.IntN(1 + random.IntN(60)))})
		}
		var stack []uint32
		var want []float64
		for _, reading := range s.Readings {
			if at := slices.Index(stack, reading.Name); at >= 0 {
				want = append(want, float64(at))
				stack = slices.Delete(stack, at, at+1)
			}
			stack = slices.Insert(stack, 0, reading.Name)
		}
		slices.Sort(want)
		if r, _ := Study([]Sample{s}); !slices.Equal(r.distances, want) {
			t.Fatalf("distances %v, want %v", r.distances, want)
		}
	}
}

// TestSamplesOfUnlikeLimits: a process whose limit fell further speaks for all: names above it are nobody's.
func TestSamplesOfUnlikeLimits(t *testing.T) {
	whole := epochs(4000, 2, 0, rand.New(rand.NewPCG(5, 6)))
	half := epochs(4000, 2, 1, rand.New(rand.NewPCG(7, 8)))
	r, _ := Study([]Sample{whole, half})
	if r.Share != 0.5 || r.Readings != 2*len(half.Readings) || r.PerEpoch != 2 {
		t.Errorf("share %v, %d readings of %d, %v a name and epoch", r.Share, r.Readings, len(half.Readings), r.PerEpoch)
	}
}

// TestOneEpochTellsNothingOfACache: nothing was read twice, so what a cache would hit is unknown, not 0.
func TestOneEpochTellsNothingOfACache(t *testing.T) {
	r, _ := Study([]Sample{epochs(1000, 1, 0, rand.New(rand.NewPCG(9, 10)))})
	if share, ok := r.Hits(1e9); ok {
		t.Errorf("hits %v of readings that nobody repeated", share)
	}
	if r.Again != 0 || r.Complete {
		t.Errorf("%+v", r)
	}
	second := epochs(1000, 2, 0, rand.New(rand.NewPCG(9, 10)))
	second.Readings = second.Readings[:1300]
	r, _ = Study([]Sample{second})
	if share, ok := r.Hits(500); ok {
		t.Errorf("hits %v, told by the first readings of a second pass: those that come back soon", share)
	}
}

// TestFewNamesSpeakForNobody: of thirty names in a sample the number of all is not known.
func TestFewNamesSpeakForNobody(t *testing.T) {
	s := Sample{Halvings: 4}
	for i := range 30 {
		s.Readings = append(s.Readings, Reading{T: int64(i), Name: uint32(i)})
	}
	r, _ := Study([]Sample{s})
	if names, _, _, ok := r.All(); ok {
		t.Errorf("%v names from a sample of 30", names)
	}
	if _, ok := Study(nil); ok {
		t.Error("something is known of no readings")
	}
}

func BenchmarkStudy(b *testing.B) {
	s := epochs(4096, 50, 0, rand.New(rand.NewPCG(1, 1)))
	for b.Loop() {
		Study([]Sample{s})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(s.Readings)), "ns/reading")
}

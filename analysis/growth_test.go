package analysis

import (
	"testing"

	"github.com/datawait/datawait/analysis/load"
)

// worker builds a batch every 50 ms for 20 s and is looked at every second.
func worker(rss func(second int) float64) (readings []memory, batches []load.Batch) {
	for n := range 400 {
		batches = append(batches, load.Batch{Begin: int64(n) * 50e6, End: int64(n)*50e6 + 40e6})
	}
	for second := range 20 {
		readings = append(readings, memory{int64(second+1) * 1e9, rss(second)})
	}
	return readings, batches
}

func TestAWorkerThatGrowsWithItsBatches(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name string
		rss  func(second int) float64
		want bool
	}{
		{"5 MB a second", func(s int) float64 { return float64(200+5*s) * mb }, true},
		{"5 MB a second, and it ends", func(s int) float64 { return float64(200+5*s) * mb * float64(min(19-s, 1)) }, true},
		{"as large as ever", func(int) float64 { return 200 * mb }, false},
		{"a cache that fills and is full", func(s int) float64 { return float64(200+20*min(s, 4)) * mb }, false},
		{"a few pages", func(s int) float64 { return 200*mb + float64(s)*4096 }, false},
		{"large, and hardly more", func(s int) float64 { return float64(20000+5*s) * mb }, false},
	} {
		s, ok := swelling(worker(c.rss))
		if ok != c.want {
			t.Errorf("%s: %v %v", c.name, s, ok)
		}
		if per := s.bytes / max(1, s.batches); ok && (per < 0.9*5*mb/20 || per > 1.1*5*mb/20) { // 20 batches a second
			t.Errorf("%s: %.0f bytes a batch", c.name, per)
		}
	}
}

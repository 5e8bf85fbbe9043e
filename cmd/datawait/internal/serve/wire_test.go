package serve

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/recording"
)

// An exporter collects when it likes: its counters are not missed before a second value of it could have come.
func TestAnExporterIsGivenTime(t *testing.T) {
	const s = uint64(time.Second)
	nan := float32(math.NaN())
	for _, c := range []struct {
		source string
		length uint64 // s, of the newest window; 0 = none came
		want   time.Duration
	}{
		{"dcgm + nvml-states", 0, 46 * time.Second},
		{"dcgm + nvml-states", 60, 46 * time.Second},
		{"scrape", 0, 100 * time.Second},
		{"scrape + nvml-states", 30, 100 * time.Second},
		{"scrape", 90, 180 * time.Second},
	} {
		node := live.New(live.Options{Begin: s})
		w := newWire(node.Agent(), live.New(live.Options{Begin: s}).Agent(), pods{})
		_, err := w.Declare(recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		child, err := w.Declare(recording.Declaration{Producer: recording.ProducerAgent, PID: os.Getpid() + 1})
		if err != nil {
			t.Fatal(err)
		}
		out := recording.NewAppender(w, child)
		if err := out.Note(recording.GPUNote{UUID: "GPU-a", Source: c.source, Grade: "B"}); err != nil {
			t.Fatal(err)
		}
		if c.length > 0 {
			err := out.Append(recording.GPU{Begin: s, End: s + c.length*s, SM: 0.5, Resident: nan, Tensor: nan, DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan}.Encode())
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Duration(w.gpu.patience(Options{Interval: time.Second})); got != c.want {
			t.Errorf("counters of %s in windows of %d s are missed after %v, want %v", c.source, c.length, got, c.want)
		}
	}
}

package analysis

import (
	"math/rand/v2"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
)

// jittery builds batches in times that vary, so that counter windows differ.
func jittery(mean int64) func(int, int, int) int64 {
	return func(rank, epoch, batch int) int64 {
		r := rand.New(rand.NewPCG(uint64(rank)<<32+uint64(epoch), uint64(batch)))
		return mean/4 + int64(r.ExpFloat64()*0.75*float64(mean))
	}
}

func mixedJob() simulate.Job {
	return simulate.Job{Epochs: 1, Steps: 1500, Workers: 2, Prefetch: 2, Build: jittery(48 * ms), Handoff: ms / 10,
		Start: 50 * ms, Compute: 12 * ms, Depth: 1, Host: ms / 2, SM: 0.62, Window: 100 * ms}
}

func TestUnmix(t *testing.T) {
	r, _ := analyse(t, mixedJob())
	g := r.GPUs[0]
	computing, ok := g.SMActiveComputing.Get()
	if !ok || !near(computing.Value, 0.61, 0.02) {
		t.Errorf("SM activity while computing = %+v %q", computing, g.SMActiveComputing.Why())
	}
	waiting, ok := g.SMActiveWaiting.Get()
	if !ok || !near(waiting.Value, 0, 0.02) {
		t.Errorf("SM activity while waiting = %+v %q", waiting, g.SMActiveWaiting.Why())
	}
	if lag := r.Quality.Clock.GPULagSeconds.Or(-1); lag != 0 {
		t.Errorf("lag = %v s where there is none", lag)
	}
}

func TestLag(t *testing.T) {
	for _, lag := range []int64{-120 * ms, 50 * ms, 130 * ms} {
		j := mixedJob()
		j.Lag = lag
		r, _ := analyse(t, j)
		if got := r.Quality.Clock.GPULagSeconds.Or(-1); !near(got, float64(lag)/1e9, 0.011) {
			t.Errorf("lag = %v s, want %v ms", got, lag/ms)
		}
		computing, ok := r.GPUs[0].SMActiveComputing.Get()
		if !ok || !near(computing.Value, 0.61, 0.03) {
			t.Errorf("lag %d ms: SM activity while computing = %+v", lag/ms, computing)
		}
	}
}

func TestUnmixRefuses(t *testing.T) {
	j := mixedJob()
	j.Window = 1000 * ms // windows hold sixty steps each: all alike
	r, _ := analyse(t, j)
	if e, ok := r.GPUs[0].SMActiveComputing.Get(); ok && !near(e.Value, 0.61, 3*(e.High-e.Low)) {
		t.Errorf("SM activity while computing = %+v: a number was shown that the windows do not support", e)
	}
	j = mixedJob()
	j.Build = constant(10 * ms) // never waits
	r, _ = analyse(t, j)
	if e, ok := r.GPUs[0].SMActiveWaiting.Get(); ok {
		t.Errorf("SM activity while waiting = %+v, but it never waits", e)
	}
}

// TestSeek: however far and in whichever direction the cursor has to go, the waiting before a time is what adding it up gives.
func TestSeek(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var c cumulative
	var waits []span
	for now, sum := int64(0), int64(0); len(waits) < 300; {
		begin := now + r.Int64N(20)
		now = begin + 1 + r.Int64N(20)
		c.begins, c.before, waits = append(c.begins, begin), append(c.before, sum), append(waits, span{begin, now})
		sum += now - begin
		if len(waits) == 300 {
			c.before = append(c.before, sum)
		}
	}
	for range 3000 {
		at := r.Int64N(waits[299].end+100) - 50
		want := int64(0)
		for _, w := range waits {
			want += max(0, min(w.end, at)-w.begin)
		}
		if got := c.upTo(at); got != want {
			t.Fatalf("%d ns of waiting before %d, want %d", got, at, want)
		}
	}
}

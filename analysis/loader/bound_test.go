package loader

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/datawait/datawait/analysis/loader/replay"
)

func anyLaw(r *rand.Rand) Law {
	return Law{Workers: 1 + r.IntN(8), Prefetch: 1 + r.IntN(3), Fetches: 1, Compute: 1 + 39*r.Float64(), WorkerCores: float64(1 + r.IntN(4)), JobCores: math.Inf(1)}
}

// TestLawIsTheReplayOfOneResource: with constant times and one resource the largest term is the step.
func TestLawIsTheReplayOfOneResource(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p replay.Player
	for name, set := range map[string]func(*Law){
		"latency":   func(l *Law) { l.Off = 1 + 99*r.Float64() },
		"exclusive": func(l *Law) { l.Off = 1 + 30*r.Float64(); l.Shared = l.Off },
		"cpu":       func(l *Law) { l.CPU = 1 + 99*r.Float64(); l.Work = l.CPU },
	} {
		for range 150 {
			l := anyLaw(r)
			set(&l)
			if got, want := p.Play(l.setup(), nil, 60*l.Workers).Seconds, l.Bound(); math.Abs(got-want) > 0.01*want {
				t.Errorf("%s %+v: replayed %.2f, law %.2f", name, l, got, want)
			}
		}
	}
}

// TestLawIsABound where waiting and computing are mixed; off by 40 % at worst and by little on average.
func TestLawIsABound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var p replay.Player
	sum := 0.0
	for range 300 {
		l := anyLaw(r)
		l.Prefetch, l.CPU, l.Shared = 2, 50*r.Float64(), 10*r.Float64()
		l.Work, l.Off = l.CPU, l.Shared+50*r.Float64()
		got, want := p.Play(l.setup(), nil, 60*l.Workers).Seconds, l.Bound()
		if l.Workers == 1 {
			want = math.Max(l.Compute, l.Build()) // nobody to share with
		}
		if got < 0.99*want || got > 1.45*want {
			t.Errorf("%+v: replayed %.2f, law %.2f", l, got, want)
		}
		sum += got / want
	}
	if mean := sum / 300; mean > 1.06 {
		t.Errorf("the law is %.0f %% short on average", 100*(mean-1))
	}
}

// FuzzLaw: more of a good thing never makes a step longer, and no step beats C.
func FuzzLaw(f *testing.F) {
	f.Add(uint8(2), 8.0, 48.0, 12.0, 1.0, 2.0, 1.0)
	f.Fuzz(func(t *testing.T, w uint8, off, cpu, c, shared, k, h float64) {
		for _, v := range []float64{off, cpu, c, shared, k, h} {
			if !(v >= 0 && v < 1e9) {
				t.Skip()
			}
		}
		l := Law{Workers: 1 + int(w), Fetches: 1, Compute: c, Handoff: h, Off: off, CPU: cpu, Work: cpu, Shared: math.Min(shared, off),
			WorkerCores: 0.1 + k, JobCores: 0.1 + k}
		step := l.Bound()
		if step < c {
			t.Errorf("%+v: step %v beats C", l, step)
		}
		better := []func(*Law){
			func(l *Law) { l.Workers++ },
			func(l *Law) { l.WorkerCores++; l.JobCores++ },
			func(l *Law) { l.Off /= 2; l.Shared /= 2 },
			func(l *Law) { l.CPU /= 2; l.Work /= 2 },
			func(l *Law) { l.Handoff = 0 },
		}
		for i, b := range better {
			after := l
			b(&after)
			if after.Bound() > step {
				t.Errorf("%+v: change %d makes the step longer: %v → %v", l, i, step, after.Bound())
			}
		}
		if n, ok := l.Enough(0); ok {
			if d := l.withWorkers(n).Bound() - l.withWorkers(n+1000).Bound(); d > 1e-9*step {
				t.Errorf("%+v: %d workers leave %v to gain", l, n, d)
			}
		}
	})
}

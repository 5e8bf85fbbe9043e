package analysis

import (
	"math/rand/v2"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
)

// mixture is a job of which the activity while computing and while waiting is known: the device does nothing between two steps but wait.
func mixture(r *rand.Rand) simulate.Job {
	j := simulate.Job{Epochs: 1, Steps: 1200 + r.IntN(1200), Workers: 1 + r.IntN(4), Prefetch: 2, Compute: int64(6+r.IntN(40)) * ms, Depth: r.IntN(2), Handoff: int64(r.IntN(300_000)),
		Start: 20 * ms, SM: 0.3 + 0.65*r.Float32(), Window: int64(100+100*r.IntN(2)) * ms}
	j.IdleSM = j.SM * 0.6 * r.Float32() // a collective that spins, another stream
	if r.IntN(4) == 0 {
		j.IdleSM = 0
	}
	slack := 0.4 + 2.2*r.Float64() // of the time that workers need, to that which a step takes
	j.Build = jittery(int64(slack * float64(j.Compute) * float64(j.Workers)))
	j.Noise = min(0.04*r.Float32(), j.IdleSM, 1-j.SM) // activity is never below 0 or above 1
	return j
}

// What is shown of activity while computing and while waiting holds the truth as often as its interval promises, whatever the lag of the
// counters; it is shown for most jobs that wait in turns, and it is tight.
func TestUnmixedIsTheTruth(t *testing.T) {
	const jobs = 120
	shown, missed, far := 0, 0, 0
	for seed := range uint64(jobs) {
		random := rand.New(rand.NewPCG(seed, 42))
		j := mixture(random)
		if seed%2 == 1 {
			j.Lag = random.Int64N(3*j.Window) - 3*j.Window/2
		}
		r, _ := analyse(t, j)
		g := r.GPUs[0]
		for _, c := range []struct {
			e     Est
			truth float64
		}{{g.SMActiveComputing, float64(j.SM)}, {g.SMActiveWaiting, float64(j.IdleSM)}} {
			e, ok := c.e.Get()
			if !ok {
				continue
			}
			shown++
			if e.High-e.Low > 2*unmixHalf+1e-9 {
				t.Errorf("seed %d: %+v is not tight", seed, e)
			}
			if c.truth < e.Low-1e-3 || c.truth > e.High+1e-3 {
				missed++
				if j.Lag != 0 && r.Quality.Clock.GPULagSeconds.Or(0) == 0 {
					t.Errorf("seed %d: %+v, truth %v, beside a lag of %d ms that was not found", seed, e, c.truth, j.Lag/ms)
				}
			}
			if !near(e.Value, c.truth, 2*unmixHalf) {
				far++
			}
		}
	}
	if shown < jobs || missed > shown/20 || far > 0 {
		t.Errorf("%d of %d shown, %d missed, %d far", shown, 2*jobs, missed, far)
	}
}

// A lag that is applied is right to a thirtieth of a window, those of a third of a window and more are nearly all found, and none is made
// up where there is none.
func TestLagIsTheTruth(t *testing.T) {
	large, found := 0, 0
	for seed := range uint64(80) {
		random := rand.New(rand.NewPCG(seed, 7))
		j := mixture(random)
		if seed%2 == 1 {
			j.Lag = random.Int64N(3*j.Window) - 3*j.Window/2
		}
		r, _ := analyse(t, j)
		lag := r.Quality.Clock.GPULagSeconds.Or(0)
		if lag != 0 && !near(lag, float64(j.Lag)/1e9, float64(j.Window)/30e9) {
			t.Errorf("seed %d: %v s, truth %v ms of windows of %v ms", seed, lag, j.Lag/ms, j.Window/ms)
		}
		if 3*abs(j.Lag) >= j.Window {
			large++
			if lag != 0 {
				found++
			}
		}
	}
	if large < 20 || 10*found < 9*large {
		t.Errorf("%d of %d large lags were found", found, large)
	}
}

package frameworks

import (
	"fmt"
	"testing"
)

// computeSeconds is what a job computes on a batch (known.py), and the emulated device with it.
const computeSeconds = 0.012

// The cached-data test runs to its end inside the frameworks that take the loop out of the user's hands. An epoch is made longer
// than the test, for at its end these jobs save.
func TestCachedData(t *testing.T) {
	for _, j := range []job{
		{name: "Lightning", modules: "lightning", script: []string{"train_lightning.py", "--batches", "100000"}, fetches: 1},
		{name: "HF Trainer", modules: "transformers, accelerate", script: []string{"train_hf_trainer.py", "--steps", "100000", "--every", "100000"}, fetches: 4},
		{name: "Accelerate", modules: "accelerate", script: []string{"train_accelerate.py", "--steps", "100000"}, fetches: 2},
	} {
		t.Run(j.name, func(t *testing.T) { attempt(t, j.diagnose, j.endsByItself, j.cachedIsFaster) })
	}
}

// diagnose runs the cached-data test on batches in memory alone: it is over when four pairs of blocks count.
func (j job) diagnose(t *testing.T) observed {
	t.Helper()
	return j.under(t, 0, "diagnose", "--gpu", "emulated", "--throwaway", "--legs", "host-cached", "--interval", "30ms", "--duration", "90s")
}

// endsByItself wants a run that datawait ended in next(), with nothing gone wrong before.
func (j job) endsByItself(t *testing.T, o observed) {
	t.Helper()
	o.checkHook(t)
	if o.EndedBy != "datawait" || len(o.Ranks) != 1 || o.Ranks[0].Ended != "parked" {
		t.Fatalf("ended by %s, ranks %+v", o.EndedBy, o.Ranks)
	}
	if f := o.Job.FetchesPerStep; f == nil || *f != j.fetches {
		t.Errorf("%s fetches a step, want %v", value(f), j.fetches)
	}
}

// cachedIsFaster compares with arithmetic, of which a busy machine (a gross tolerance) excuses only what takes longer: a live step takes what two workers need for its batches, and one on batches in memory what
// computing takes, and what the framework does.
func (j job) cachedIsFaster(o observed, tolerance float64) (wrong []string) {
	claim := claims(&wrong)
	b := o.Baseline
	if b == nil || b.Legs["host-cached"].Step == nil || b.Legs["live"].Step == nil {
		if tolerance >= gross {
			return nil // no time was left for it
		}
		return append(wrong, fmt.Sprintf("the test has no result: %+v, warnings %v", b, o.Quality.Warnings))
	}
	live, cached := b.Legs["live"].Step.Value, b.Legs["host-cached"].Step.Value
	claim(live >= 0.99*j.fetches*buildSeconds/workers, "a live step takes %.4f s, less than its batches take to build", live)
	claim(cached >= 0.99*j.fetches*computeSeconds, "a step on batches in memory takes %.4f s, less than it computes", cached)
	if tolerance >= gross {
		return wrong
	}
	claim(cached <= 0.8*live, "a step on batches in memory takes %.4f s, a live one %.4f", cached, live)
	claim(b.Legs["host-cached"].Blocks >= 2, "only %d blocks on batches in memory count", b.Legs["host-cached"].Blocks)
	claim(b.Conclusion == "input-pipeline", "the test concludes %q", b.Conclusion)
	return wrong
}

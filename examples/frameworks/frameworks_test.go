// Package frameworks runs a short job in each of the frameworks that people train with, and holds datawait's report against
// what is known of the job: what it was told to do, and the clock that its script keeps for itself.
package frameworks

import (
	"os"
	"sync"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

func TestMain(m *testing.M) { os.Exit(trial.Main(m)) }

// Known of all jobs (known.py): two workers build, each for so many seconds a batch.
const (
	workers      = 2
	buildSeconds = 0.080
)

var jobs = []job{
	{name: "Lightning", modules: "lightning", script: []string{"train_lightning.py", "--batches", "40"}, steps: 80, fetches: 1, epochs: 2,
		validation: 10, own: 0.06}, // 4 after each of two epochs, and 2 of the check before the first
	{name: "HF Trainer", modules: "transformers, accelerate", script: []string{"train_hf_trainer.py", "--steps", "40", "--every", "15"}, steps: 40,
		fetches: 4, perReading: 4, validation: 12, own: 0.08},
	{name: "Accelerate", modules: "accelerate", script: []string{"train_accelerate.py", "--steps", "40"}, steps: 40, fetches: 2, own: 0.02},
	{name: "timm", modules: "timm", script: []string{"train_timm.py", "--steps", "70"}, steps: 70, fetches: 1, own: 0.02},
	{name: "WebDataset", modules: "webdataset", script: []string{"train_webdataset.py", "--steps", "40"}, steps: 40, fetches: 2, perReading: 2, own: 0.04},
	{name: "StatefulDataLoader", modules: "torchdata", script: []string{"train_stateful.py", "--steps", "70"}, steps: 70, fetches: 1, own: 0.02},
	{name: "torch.compile", modules: "torch", script: []string{"train_compile.py", "--steps", "70"}, steps: 70, fetches: 1, own: 0.02},
	{name: "compiled optimizer", modules: "torch", script: []string{"train_compile.py", "--steps", "70", "--optimizer"}, steps: 70, fetches: 1,
		byFetch: true, own: 0.02},
	{name: "watch", modules: "torch", script: []string{"train_watch.py", "--steps", "70"}, steps: 70, fetches: 1, kind: "watch", own: 0.02},
}

// machine is shared by jobs that run side by side; who has it to himself locks it.
var machine sync.RWMutex

// The jobs mostly sleep, so two of them run side by side; one whose times are off is run again alone.
func TestFrameworks(t *testing.T) {
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			j.test(t, j.record)
		})
	}
}

// Ranks wait for one another, so nothing runs beside them.
func TestRanks(t *testing.T) {
	j := job{modules: "torch", script: []string{"train_ddp.py", "--steps", "70"}, ranks: 2, steps: 70, fetches: 1, own: 0.03}
	t.Run("one datawait around torchrun", func(t *testing.T) { j.test(t, j.record) })
	t.Run("one datawait in every rank", func(t *testing.T) { j.test(t, j.recordEachRank) })
}

// One rank fetches for both. The other's wait is unknown, not 0, and does not halve the job's.
func TestDispatcher(t *testing.T) {
	j := job{modules: "accelerate", script: []string{"train_accelerate.py", "--dispatch", "--steps", "25"}, ranks: 2, fetching: 1, steps: 25, fetches: 4,
		perReading: 2, own: 0.35} // the script's clock holds what sending the batches takes
	j.test(t, j.record)
}

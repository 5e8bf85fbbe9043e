package analysis

import (
	"testing"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// TestTrialsAreHeldAgainstTheLiveBlockBefore: live steps of 10 ms, then of 20 while a neighbour is busy; a loader that takes half of
// either saves a half, whatever the mean of all steps is. A block whose note is missing tells nothing.
func TestTrialsAreHeldAgainstTheLiveBlockBefore(t *testing.T) {
	x := newTape(t)
	id := x.rank(10, 0)
	x.fetch(id, 0, 0, 0, 1, 2)
	block := func(number uint32, leg recording.Leg, from, length float64) {
		x.write(id, recording.Block{Ref: uint16(leg), Begin: at(from), End: at(from + length), Block: number, Steps: 10, Fetches: 10}.Encode())
	}
	four := recording.TrialNote{Workers: 4, Prefetch: 2}
	for i, live := range []float64{100, 200, 100} {
		block(uint32(2*i+1), recording.LegLive, 1000*float64(i), live)
		block(uint32(2*i+2), recording.LegTrial, 1000*float64(i)+500, live/2)
		four.Block = uint32(2*i + 2)
		x.AddNote(id, four)
	}
	block(7, recording.LegLive, 4000, 100)
	block(8, recording.LegTrial, 4500, 10)
	r := x.run()
	if len(r.Trials) != 1 || r.Trials[0].Workers != 4 || r.Trials[0].Blocks != 3 {
		t.Fatalf("%+v", r.Trials)
	}
	wants(t, "saved", r.Trials[0].Saved, 0.5, 1e-9)
	wants(t, "a step", r.Trials[0].StepSeconds, 0.02/3, 1e-9)
	if _, ok := r.Baseline.Legs["trial"]; ok {
		t.Error("a trial is no leg of the cached-data test")
	}
}

// TestWhatIsTried: the arguments that a fix sets, the others as they are; and samples kept in memory where preparing them once is
// ranked. Nothing else can be tried by making a loader anew.
func TestWhatIsTried(t *testing.T) {
	fix := func(id string, workers, prefetch unit.Maybe[int]) Fix {
		return Fix{ID: id, Arguments: fixes.LoaderArguments{Workers: workers, Prefetch: prefetch}}
	}
	none := unit.None[int]("unchanged")
	r := &Result{
		Loaders: []Loader{{Role: "training", WaitSeconds: 1, WorkersSeen: 2, Arguments: arguments(recording.LoaderNote{Arguments: recording.LoaderArguments{PrefetchFactor: unit.Some[int64](3)}})}},
		Fixes: []Fix{fix(fixes.MoreWorkers, unit.Some(6), none), fix(fixes.NVMeCache, none, none), fix(fixes.PrefetchFactor, none, unit.Some(4)),
			fix(fixes.PreprocessOnce, none, none)},
	}
	want := []recording.Trial{{Workers: 6, Prefetch: 3}, {Workers: 2, Prefetch: 4}, {Workers: 2, Prefetch: 3, Memoised: true}}
	got := Trials(r)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

package analysis

import (
	"slices"
	"testing"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/stat"
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

// TestWhatIsTriedUnasked: loader arguments that rank first or second and save more than 5 %. No samples in memory, and no queue that does not
// fit into /dev/shm: a killed worker would end a run whose owner asked for nothing.
func TestWhatIsTriedUnasked(t *testing.T) {
	none := unit.None[int]("unchanged")
	fix := func(id string, saved float64, workers, prefetch unit.Maybe[int]) Fix {
		return Fix{ID: id, Arguments: fixes.LoaderArguments{Workers: workers, Prefetch: prefetch},
			Predicted: fixes.Prediction{StepSavedShare: unit.Some(stat.Estimate{Value: saved})}}
	}
	six := func(saved float64) Fix { return fix(fixes.MoreWorkers, saved, unit.Some(6), none) }
	cache := fix(fixes.NVMeCache, 0.6, none, none)
	once := fix(fixes.PreprocessOnce, 0.5, none, none)
	crowded := six(0.4)
	crowded.NoRoom = true
	trial := recording.Trial{Workers: 6, Prefetch: 2}
	for _, c := range []struct {
		name  string
		fixes []Fix
		want  []recording.Trial
	}{
		{"first", []Fix{six(0.4)}, []recording.Trial{trial}},
		{"second", []Fix{cache, six(0.4)}, []recording.Trial{trial}},
		{"third", []Fix{cache, once, six(0.4)}, nil},
		{"saves little", []Fix{six(0.05)}, nil},
		{"its queues do not fit", []Fix{crowded}, nil},
		{"first and second", []Fix{six(0.4), fix(fixes.PrefetchFactor, 0.1, none, unit.Some(4))}, []recording.Trial{trial, {Workers: 2, Prefetch: 4}}},
		{"nothing ranked", nil, nil},
	} {
		r := &Result{Loaders: []Loader{{Role: "training", WaitSeconds: 1, WorkersSeen: 2}}, Fixes: c.fixes}
		if got := BestTrials(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := Trials(&Result{Fixes: []Fix{crowded}}); len(got) > 0 {
		t.Errorf("what does not fit is not tried when asked for either: %+v", got)
	}
}

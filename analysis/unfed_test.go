package analysis

import (
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// validation writes a loop without steps over a loader.
func (x *tape) validation(id recording.StreamID, loader uint16, flags uint8, begin float64) {
	for i := range 4 {
		x.fetch(id, loader, flags|first(i), uint32(i), begin+5*float64(i), begin+5*float64(i)+1)
	}
}

// TestStepsWithoutFetchesAreNoZeroWait: the batches come from a loader that the hook does not see.
func TestStepsWithoutFetchesAreNoZeroWait(t *testing.T) {
	for name, validates := range map[string]func(*tape, recording.StreamID, float64){
		"nothing but steps":            func(*tape, recording.StreamID, float64) {},
		"validation with autograd off": func(x *tape, id recording.StreamID, t float64) { x.validation(id, 0, recording.FetchNoGrad, t) },
		"evaluation with autograd on":  func(x *tape, id recording.StreamID, t float64) { x.validation(id, 0, 0, t) },
		"one batch of it, autograd off": func(x *tape, id recording.StreamID, t float64) {
			x.fetch(id, 0, recording.FetchNoGrad|recording.FetchFirst, 0, t, t+1)
		},
	} {
		x := newTape(t)
		id := x.rank(7, 0)
		for i := range 60 {
			now := float64(40 * i)
			x.step(id, now+20)
			if i%20 == 19 {
				validates(x, id, now+20)
			}
		}
		r := x.run()
		if r.Job.StepIs != "optimizer step" || r.Job.Steps != 60 {
			t.Errorf("%s: %d steps, a step is %s", name, r.Job.Steps, r.Job.StepIs)
		}
		wants(t, name+": step", r.Step.MeanSeconds, 0.040, 1e-9)
		if r.Step.DataWaitShare.IsKnown() || r.Step.P50WaitSeconds.IsKnown() || r.Step.ExposedWaitShare.IsKnown() ||
			r.Step.EpochStartShare.IsKnown() || r.Job.FetchesPerStep.IsKnown() || r.Ranks[0].DataWaitShare.IsKnown() {
			t.Errorf("%s: a wait is known: %+v, rank %+v", name, r.Step, r.Ranks[0])
		}
		for _, p := range r.Step.Anatomy {
			if p.Name != "unexplained" {
				t.Errorf("%s: a step has a part %+v", name, p)
			}
		}
		for _, l := range r.Loaders {
			if l.Role == "training" {
				t.Errorf("%s: loader %+v trains", name, l)
			}
		}
	}
}

// TestOneRankFetchesForAll: Accelerate's dispatcher. The others do not wait zero, and the job's wait is not halved.
func TestOneRankFetchesForAll(t *testing.T) {
	x := newTape(t)
	one, other := x.rank(7, 0), x.rank(8, 1)
	for i := range 120 {
		now := float64(20 * i)
		x.fetch(one, 0, first(i), uint32(i), now, now+5)
		if i%2 == 1 {
			x.step(one, now+20)
			x.step(other, now+20)
		}
	}
	r := x.run()
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	if n := r.Job.FetchesPerStep.Or(0); n != 2 {
		t.Errorf("%v fetches per step", n)
	}
	if len(r.Ranks) != 2 || r.Ranks[0].DataWaitShare.Or(0) != 0.25 || r.Ranks[1].DataWaitShare.IsKnown() || r.Ranks[1].DataWaitShare.Why() != noFetch {
		t.Errorf("ranks %+v", r.Ranks)
	}
}

// TestEvaluationWithAutogradOn: the loops of a Hugging Face Trainer between the steps are validation.
func TestEvaluationWithAutogradOn(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	now := 0.0
	for i := range 60 {
		x.fetch(id, 0, first(i), uint32(i), now, now+5)
		now += 20
		x.step(id, now)
		if i%20 == 19 {
			x.validation(id, 1, 0, now)
			now += 20
		}
	}
	r := x.run()
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	if r.Loaders[0].Role != "training" || r.Loaders[1].Role != "validation" {
		t.Errorf("loader 0 is %s, loader 1 %s", r.Loaders[0].Role, r.Loaders[1].Role)
	}
}

// TestOneBatchAnEpochTrains: no iterator of the loader spans a step, and yet the steps are made on its batches.
func TestOneBatchAnEpochTrains(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 30 {
		now := float64(100 * i)
		x.write(id, recording.Fetch{Flags: recording.FetchFirst, Enter: at(now), Exit: at(now + 5), Epoch: uint32(i), Step: x.steps[id], Thread: 1,
			CPU: recording.Unknown64, Ready: recording.Unknown32}.Encode())
		for k := range 5 { // several steps on each batch
			x.step(id, now+20+float64(10*k))
		}
	}
	r := x.run()
	if r.Loaders[0].Role != "training" {
		t.Errorf("the loader is %s", r.Loaders[0].Role)
	}
	if !slices.ContainsFunc(r.Quality.Warnings, func(w string) bool { return strings.Contains(w, "made 120 of 150 steps without a fetch") }) {
		t.Errorf("it may be fed by another: %+v, warnings %q", r.Loaders, r.Quality.Warnings)
	}
}

// TestAnotherLoaderIsNamed: as the verdict where nothing else feeds the steps, as a warning where something does.
func TestAnotherLoaderIsNamed(t *testing.T) {
	for _, fed := range []bool{false, true} {
		x := newTape(t)
		id := x.rank(7, 0)
		x.AddNote(id, recording.OtherLoaderNote{Module: "nvidia.dali.plugin.pytorch"})
		for i := range 60 {
			now := float64(20 * i)
			if fed {
				x.fetch(id, 0, first(i), uint32(i), now, now+5)
			}
			x.step(id, now+20)
		}
		r := x.run()
		warned := slices.ContainsFunc(r.Quality.Warnings, func(w string) bool {
			return strings.Contains(w, "NVIDIA DALI") && strings.Contains(w, "datawait.watch(")
		})
		if has(r, "loader-not-seen") == fed || warned != fed {
			t.Errorf("fed %v: verdicts %+v, warnings %v", fed, r.Verdicts, r.Quality.Warnings)
		}
		if !fed && !strings.Contains(r.Verdicts[0].Title, "NVIDIA DALI") {
			t.Errorf("the verdict does not name it: %s", r.Verdicts[0].Title)
		}
	}
}

// A loader that another thread reads, beside one that training reads itself: what training waits for it is not seen, and the rest is no
// answer. Where training's own loader builds in its process, the thread may be what feeds it, unless steps are made without it.
func TestAWaitBesideAThreadIsNotTheWholeWait(t *testing.T) {
	for name, c := range map[string]struct {
		workers int64 // of the loader that training reads
		flags   uint8 // of the other's fetches
		every   int   // steps between two of them
		own     int   // training fetches before so many of ten steps
		known   bool
	}{
		"as often as steps":                   {2, recording.FetchOffThread, 1, 10, false},
		"every other step":                    {2, recording.FetchOffThread, 2, 10, false},
		"seldom":                              {2, recording.FetchOffThread, 8, 10, true},
		"a validation on a thread":            {2, recording.FetchOffThread | recording.FetchNoGrad, 1, 10, true},
		"inside another loader's fetch":       {2, recording.FetchOffThread | recording.FetchNested, 1, 10, true},
		"what feeds a loader of this process": {0, recording.FetchOffThread, 1, 10, true},
		"for the other half of the steps":     {0, recording.FetchOffThread, 1, 5, false},
		"for one step in ten":                 {0, recording.FetchOffThread, 10, 9, false},
		"seldom, beside steps made again":     {0, recording.FetchOffThread, 10, 5, true},
	} {
		x := newTape(t)
		id := x.rank(7, 0)
		for loader, workers := range []int64{c.workers, 1} {
			note := recording.LoaderNote{Loader: uint16(loader), Kind: "torch", Arguments: recording.LoaderArguments{Workers: unit.Some(workers)}}
			if err := x.Note(id, recording.EncodeNote(note)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 80 {
			now := float64(40 * i)
			if i%c.every == 0 {
				x.fetch(id, 1, c.flags|first(i), uint32(i), now-30, now)
			}
			if i%10 < c.own {
				x.fetch(id, 0, first(i), uint32(i), now, now+2)
			}
			x.step(id, now+20)
		}
		r := x.run()
		if r.Step.DataWaitShare.IsKnown() != c.known {
			t.Errorf("%s: data wait %+v", name, r.Step.DataWaitShare)
		}
		unseen := slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.ID == "loader-not-seen" && strings.Contains(v.Title, "another thread") })
		if unseen == c.known || !c.known && len(r.Fixes)+len(r.NoHelp) > 0 {
			t.Errorf("%s: verdicts %+v, %d fixes, %d of no help", name, r.Verdicts, len(r.Fixes), len(r.NoHelp))
		}
	}
}

// Steps of the cached-data test are fed by it: nothing is said of steps without a fetch.
func TestBatchesFromMemoryAreFetches(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 120 {
		now, flags := float64(40*i), first(i)
		if i >= 40 {
			flags |= recording.FetchCached
		}
		x.fetch(id, 0, flags, uint32(i), now, now+2)
		x.step(id, now+20)
	}
	for _, w := range x.run().Quality.Warnings {
		if strings.Contains(w, "without a fetch") {
			t.Error(w)
		}
	}
}

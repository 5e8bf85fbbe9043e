package analysis

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
)

// stacked writes a job of one worker whose ten batches of 100 ms have 60 ms of CPU, and what looks at it found: the same sums twice, the
// newer of which count.
func stacked(t *testing.T, on float64) *tape {
	x := newTape(t)
	main := x.rank(7, 0)
	x.write(main, recording.Worker{T: at(0), PID: 60}.Encode())
	w, _ := x.Declare(recording.Declaration{Producer: recording.ProducerWorker, Host: "node0", PID: 60, Parent: 7})
	for i := range uint32(11) {
		begin := 100 * float64(i)
		x.write(w, recording.Batch{Ref: recording.Unknown16, Begin: at(begin), End: at(begin + 100), Sent: at(begin + 100), Batch: i, Worker: 0}.Encode())
		x.write(w, recording.Cost{Ref: recording.Unknown16, CPU: 60 * ms, ProcessCPU: 60 * ms, RunQueue: 0, Collate: recording.Unknown64, Bytes: recording.Unknown64,
			Files: recording.Unknown32, Requests: recording.Unknown32, Tensors: recording.Unknown32}.Encode())
		x.fetch(main, 0, 0, i, begin, begin+100)
	}
	x.AddNote(w, recording.FunctionsNote{First: 1, Names: []string{"train.py:Photos.__getitem__", "train.py:decode", "train.py:read"}})
	x.AddNote(w, recording.CallsNote{First: 1, Calls: [][2]uint32{{0, 1}, {1, 2}, {1, 3}}})
	x.AddNote(w, recording.TransformsNote{First: 0, Names: []string{"train:Crop"}})
	for _, part := range []float64{0.5, 1} {
		sum := func(millis float64) uint64 { return uint64(part * millis * ms) }
		x.write(w, recording.Stack{Ref: recording.Unknown16, T: at(1100 * part), On: sum(1000 * on), Call: 2, Samples: uint32(part * 60)}.Encode())
		x.write(w, recording.Stack{Ref: recording.Unknown16, T: at(1100 * part), Off: sum(1000 * (1 - on)), Call: 3, Samples: uint32(part * 40)}.Encode())
		x.write(w, recording.Transform{Ref: recording.Unknown16, T: at(1100 * part), Calls: uint64(part * 22), NS: sum(110), Transform: 0}.Encode())
		x.write(w, recording.Sampler{Ref: recording.Unknown16, T: at(1100 * part), Looks: uint64(part * 120), Samples: uint64(part * 100), CPU: sum(2), Wall: sum(1100)}.Encode())
	}
	return x
}

func TestABatchIsSplitByWhatTheLooksFound(t *testing.T) {
	l := stacked(t, 0.6).run().Loaders[0]
	if len(l.Stages) != 2 || l.Stages[0].Stage != "decode" || l.Stages[1].Stage != "read" {
		t.Fatalf("%+v", l.Stages)
	}
	for i, want := range []struct{ share, on, off, seconds float64 }{{0.6, 0.6, 0, 0.06}, {0.4, 0, 0.4, 0.04}} {
		s := l.Stages[i]
		if !near(s.Share.Or(stat.Estimate{}).Value, want.share, 1e-9) || !near(s.OnCPUShare.Or(stat.Estimate{}).Value, want.on, 1e-9) ||
			!near(s.OffCPUShare.Or(stat.Estimate{}).Value, want.off, 1e-9) || !near(s.Seconds.Or(-1), want.seconds, 1e-9) || s.Share.Or(stat.Estimate{}).Grade != "B" {
			t.Errorf("%s: %+v, want %+v", s.Stage, s, want)
		}
	}
	if got := l.Stages[0].Functions; len(got) != 1 || got[0].Function != "train.py:decode" {
		t.Errorf("%+v", got)
	}
	if agree, known := l.Sampling.Agree.Get(); !known || !agree || l.Sampling.Samples != 100 || !near(l.Sampling.Cores.Or(-1), 2.0/1100, 1e-9) {
		t.Errorf("%+v", l.Sampling)
	}
}

// Eleven batches of 100 ms hold 22 calls of 5 ms: 10 ms a batch, a tenth of it.
func TestTransformsAreToldPerCallAndPerBatch(t *testing.T) {
	l := stacked(t, 0.6).run().Loaders[0]
	if len(l.Transforms) != 1 {
		t.Fatalf("%+v", l.Transforms)
	}
	x := l.Transforms[0]
	if x.Name != "train:Crop" || x.Stage != "transform" || !near(x.SecondsPerCall, 0.005, 1e-9) || !near(x.Seconds.Or(-1), 0.01, 1e-9) || !near(x.Share.Or(-1), 0.1, 1e-9) {
		t.Errorf("%+v", x)
	}
}

// The counters say 60 % computing; looks that found none of it are no evidence to build on.
func TestLooksAtOddsWithTheCountersAreOfGradeC(t *testing.T) {
	x := stacked(t, 0)
	r := x.run()
	l := r.Loaders[0]
	if agree, known := l.Sampling.Agree.Get(); !known || agree || len(l.Stages) == 0 || l.Stages[0].Share.Or(stat.Estimate{}).Grade != "C" {
		t.Errorf("%+v, %+v", l.Sampling, l.Stages)
	}
	b := newCrew(0)
	b.stacks.Add([]string{"train.py:read"}, 0, 10, 0, 100)
	if b.inside() == nil {
		t.Error("without counters there is nothing to be at odds with")
	}
	b.costs[load.CostCPU].add(6, 10)
	b.costs[load.CostMeasured].add(10, 10)
	if b.inside() != nil {
		t.Error("fixes build on looks that the counters contradict")
	}
}

func TestARecordingWithoutLooksHasNoStages(t *testing.T) {
	x := newTape(t)
	main := x.rank(7, 0)
	x.fetch(main, 0, 0, 0, 0, 1)
	for _, l := range x.run().Loaders {
		if l.Stages == nil || len(l.Stages) != 0 || l.Stacks != nil || !strings.Contains(l.Sampling.OutsideShare.Why(), "no stack") {
			t.Errorf("%+v", l)
		}
	}
}

// What contradicts itself is nobody's number: calls in a circle, names that are missing, sums that no clock can show.
func TestHostileLooksHarmNothing(t *testing.T) {
	x := stacked(t, 0.6)
	w := recording.StreamID(2)
	x.AddNote(w, recording.CallsNote{First: 4, Calls: [][2]uint32{{5, 1}, {4, 1}, {900, 900}}})
	x.AddNote(w, recording.CallsNote{First: recording.Unknown32, Calls: [][2]uint32{{0, 1}, {0, 1}}})
	x.AddNote(w, recording.FunctionsNote{First: recording.Unknown32, Names: []string{"a", "b", strings.Repeat("c", 1<<20)}})
	for call := range uint32(20_000) {
		x.write(w, recording.Stack{Ref: recording.Unknown16, T: at(1100), On: 1, Call: call + 4, Samples: 1}.Encode())
	}
	x.write(w, recording.Stack{Ref: recording.Unknown16, T: at(1100), On: recording.Unknown64, Call: 2, Samples: recording.Unknown32}.Encode())
	l := x.run().Loaders[0]
	if !near(l.Stages[0].Share.Or(stat.Estimate{}).Value, 0.6, 0.001) {
		t.Errorf("%+v", l.Stages)
	}
}

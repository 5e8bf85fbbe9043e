package analysis

import (
	"testing"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// streaming is a rank whose loader iterates over a dataset with W workers, `giving` of which give batches: 3 epochs of 40 batches.
func streaming(t *testing.T, giving int, declared int64, seen float64) loader.Stream {
	x := newTape(t)
	id := x.rank(10, 0)
	const workers, each = 4, 40
	x.AddNote(id, recording.LoaderNote{Loader: 1, Kind: "torch", Iterable: unit.Some(true), DatasetLength: unit.Some(8 * declared),
		Arguments: recording.LoaderArguments{Workers: unit.Some(int64(workers)), BatchSize: unit.Some(int64(8))}})
	var builders []recording.StreamID
	for w := range giving {
		pid := 20 + w
		b, err := x.Declare(recording.Declaration{Producer: recording.ProducerWorker, Host: "node0", PID: pid, Parent: 10})
		if err != nil {
			t.Fatal(err)
		}
		builders = append(builders, b)
		x.write(id, recording.Worker{Ref: 1, T: at(0), Worker: uint32(w), PID: uint32(pid)}.Encode())
	}
	now := 0.0
	for epoch := range 3 {
		x.write(id, recording.Iterator{Ref: 1, Begin: at(now), End: at(now + 1), Epoch: uint32(epoch), Workers: workers, Length: recording.Unknown32, Prefetch: 2}.Encode())
		for n := range each {
			if float64(n) < seen*each {
				w := n % giving
				x.write(builders[w], recording.Batch{Ref: recording.Unknown16, Begin: at(now + 1), End: at(now + 5), Sent: at(now + 5), Batch: uint32(n), Worker: uint32(w), Resumes: uint32(epoch), Samples: 8}.Encode())
			}
			x.write(id, recording.Fetch{Flags: first(n), Ref: 1, Enter: at(now + 2), Exit: at(now + 6), Batch: uint32(n), Epoch: uint32(epoch), Step: x.steps[id], Thread: 1, CPU: recording.Unknown64, Ready: recording.Unknown32}.Encode())
			x.step(id, now+20)
			now += 20
		}
		x.write(id, recording.Fetch{Flags: recording.FetchEnd, Ref: 1, Enter: at(now), Exit: at(now + 0.1), Batch: recording.Unknown32, Epoch: uint32(epoch), Step: x.steps[id], Thread: 1, CPU: recording.Unknown64, Ready: recording.Unknown32}.Encode())
		now++
	}
	job, err := load.Survey([]recording.Reader{x})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{job: job, crews: map[uint16]*crew{}, out: &Result{}}
	r.align()
	if err := r.study(); err != nil {
		t.Fatal(err)
	}
	return r.ranked[0].stream
}

func TestWorkersThatGiveNothingAreCounted(t *testing.T) {
	if s := streaming(t, 2, 40, 1); s.Workers != 4 || s.Delivering != 2 || !s.Starved() {
		t.Errorf("%+v", s)
	}
	if s := streaming(t, 4, 40, 1); s.Delivering != 4 || s.Starved() {
		t.Errorf("%+v", s)
	}
}

// A worker whose builds were not seen may have given the batches that nobody was seen to build.
func TestUnseenBuildsMakeNoStarvedWorkers(t *testing.T) {
	if s := streaming(t, 2, 40, 0.5); s.Delivering != 0 || s.Starved() {
		t.Errorf("%+v", s)
	}
}

func TestAStreamThatIsNotDividedRepeats(t *testing.T) {
	if s := streaming(t, 4, 10, 1); s.Delivered != 40 || s.Declared != 10 || s.Repeats() != 4 {
		t.Errorf("%+v: %v", s, s.Repeats())
	}
	if s := streaming(t, 4, 40, 1); s.Repeats() != 1 {
		t.Errorf("%+v: %v", s, s.Repeats())
	}
}

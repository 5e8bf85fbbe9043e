package analysis

import (
	"testing"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/recording"
)

// epochs is a rank with two workers that trains for three epochs of 40 steps of 20 ms. A build takes 4 ms, and one of the first epoch so
// many; what that is more than 20 ms a step, the step waits.
func epochs(t *testing.T, slow float64) *rank {
	x := newTape(t)
	id := x.rank(10, 0)
	var builders []recording.StreamID
	for w := range 2 {
		b, err := x.Declare(recording.Declaration{Producer: recording.ProducerWorker, Host: "node0", PID: 20 + w, Parent: 10})
		if err != nil {
			t.Fatal(err)
		}
		builders = append(builders, b)
		x.write(id, recording.Worker{Ref: 1, T: at(0), Worker: uint32(w), PID: uint32(20 + w)}.Encode())
	}
	now := 0.0
	for epoch := range 3 {
		x.write(id, recording.Iterator{Ref: 1, Begin: at(now), End: at(now + 1), Epoch: uint32(epoch), Workers: 2, Length: 40, Prefetch: 2}.Encode())
		build := 4.0
		if epoch == 0 {
			build = slow
		}
		for n := range 40 {
			step := max(20, build/2)
			x.write(builders[n%2], recording.Batch{Ref: recording.Unknown16, Begin: at(now + 1), End: at(now + 1 + build), Sent: at(now + 1 + build), Batch: uint32(n), Worker: uint32(n % 2), Resumes: uint32(epoch), Samples: 8}.Encode())
			x.write(id, recording.Fetch{Flags: first(n), Ref: 1, Enter: at(now + 1), Exit: at(now + step - 18), Batch: uint32(n), Epoch: uint32(epoch), Step: x.steps[id], Thread: 1, CPU: recording.Unknown64, Ready: recording.Unknown32}.Encode())
			x.step(id, now+step)
			now += step
		}
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
	return r.ranked[0]
}

// 40 steps of 50 ms and then 80 of 20: steady steps take 20 ms, builds 4, and 39 steps took 30 ms more (the first one opens).
func TestAColdEpochIsLeftOutOfSteadySteps(t *testing.T) {
	k := epochs(t, 100)
	c := k.cold.found(&k.steady, k.trained())
	if !near(float64(k.steady.time)/float64(k.steady.steps), 20e6, 1e3) || !near(c.Seconds, 39*0.030, 0.04) || !near(c.Times, 25, 0.1) {
		t.Errorf("a steady step takes %d ns; %+v", k.steady.time/int64(k.steady.steps), c)
	}
	if sum, n := k.crew.build.Sums(); !near(sum/n, 0.004, 1e-6) {
		t.Errorf("a build takes %v s", sum/n)
	}
}

func TestEpochsThatAreAlikeAreNotCold(t *testing.T) {
	for _, build := range []float64{4, 8} { // twice as long may be anything
		k := epochs(t, build)
		if c := k.cold.found(&k.steady, k.trained()); c != (loader.Cold{}) || k.steady.steps < 100 {
			t.Errorf("%+v, %d steady steps", c, k.steady.steps)
		}
	}
}

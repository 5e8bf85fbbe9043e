package analysis

import (
	"math"
	"reflect"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

func TestEmpty(t *testing.T) {
	if _, err := Run(nil, Options{}); err != ErrNothing {
		t.Errorf("Run(nil) = %v", err)
	}
	r := newTape(t).run()
	if r.Job.Ranks != 0 || r.Step.MeanSeconds.IsKnown() || r.Ranks == nil {
		t.Errorf("an empty recording gives %+v", r.Job)
	}
}

// TestNoSteps: a process that only imports PyTorch.
func TestNoSteps(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	x.write(id, recording.Mark{Ref: uint16(recording.MarkCUDA), Begin: at(5), End: at(5)}.Encode())
	r := x.run()
	if r.Job.Ranks != 0 || !has(r, "no-steps-seen") {
		t.Errorf("%d ranks, verdicts %+v", r.Job.Ranks, r.Verdicts)
	}
}

// TestHookNotLoaded: Python ran, and no process of it wrote a ring.
func TestHookNotLoaded(t *testing.T) {
	x := newTape(t)
	x.SetManifest(recording.Manifest{Format: recording.Format, Host: "node0"})
	agent, _ := x.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	x.AddNote(agent, recording.JobNote{PythonChildren: 3})
	x.write(agent, recording.Machine{Begin: at(0), End: at(1000), Busy: 2, Cores: 8}.Encode())
	if r := x.run(); !has(r, "hook-not-loaded") {
		t.Errorf("verdicts %+v", r.Verdicts)
	}
}

// TestFetchesAreSteps: no optimizer was seen, so a step is a fetch.
func TestFetchesAreSteps(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 60 {
		x.fetch(id, 0, first(i), uint32(i), float64(20*i), float64(20*i+5))
	}
	r := x.run()
	if r.Job.StepIs != "fetch" || r.Job.Steps != 60 {
		t.Errorf("%d steps, a step is %s", r.Job.Steps, r.Job.StepIs)
	}
	wants(t, "step", r.Step.MeanSeconds, 0.020, 1e-9)
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	if r.Step.ExposedWaitShare.IsKnown() {
		t.Error("exposed wait is known without a device clock")
	}
	if len(r.Step.Anatomy) != 2 || r.Step.Anatomy[0].Name != "data_wait" || r.Step.Anatomy[1].Name != "unexplained" {
		t.Errorf("anatomy %+v", r.Step.Anatomy)
	}
}

// TestWatchedByAWord: watch(loader) says no more than that; the wait is measured all the same, and no number of workers is made up.
func TestWatchedByAWord(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	x.AddNote(id, recording.LoaderNote{Kind: "watch"})
	x.write(id, recording.Iterator{Begin: at(0), End: at(0), Workers: recording.Unknown32, Length: 60, Prefetch: recording.Unknown32}.Encode())
	for i := range 60 {
		x.fetch(id, 0, first(i), uint32(i), float64(20*i), float64(20*i+5))
	}
	r := x.run()
	wants(t, "step", r.Step.MeanSeconds, 0.020, 1e-9)
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	if n := r.Loaders[0].WorkersSeen; n != 0 {
		t.Errorf("%d workers were seen", n)
	}
	if has(r, "too-few-workers") || len(r.Fixes) > 0 {
		t.Errorf("who builds is not known, but %+v, %+v", r.Verdicts, r.Fixes)
	}
}

// TestAccumulation: four fetches per step.
func TestAccumulation(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	now := 0.0
	for i := range 240 {
		x.fetch(id, 0, first(i), uint32(i), now, now+2)
		now += 10
		if i%4 == 3 {
			x.step(id, now)
		}
	}
	r := x.run()
	wants(t, "step", r.Step.MeanSeconds, 0.040, 1e-9)
	wants(t, "data wait share", r.Step.DataWaitShare, 0.2, 1e-9)
	if n := r.Job.FetchesPerStep.Or(0); n != 4 {
		t.Errorf("%v fetches per step", n)
	}
}

// TestTwoLoaders: a GAN fetches from two loaders and steps two optimizers, of which one is counted.
func TestTwoLoaders(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 50 {
		now := float64(40 * i)
		x.fetch(id, 0, first(i), uint32(i), now, now+4)
		x.step(id, now+15)
		x.fetch(id, 1, first(i), uint32(i), now+15, now+21)
		x.write(id, recording.Step{Ref: 1, End: at(now + 40), Step: x.steps[id], Thread: 1, CPU: recording.Unknown64}.Encode())
	}
	r := x.run()
	wants(t, "step", r.Step.MeanSeconds, 0.040, 1e-9)
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	for _, l := range r.Loaders {
		if l.Role != "training" {
			t.Errorf("loader %d is %s", l.ID, l.Role)
		}
	}
	if r.Job.Steps != 50 {
		t.Errorf("%d steps", r.Job.Steps)
	}
}

// TestUpstream: a loader inside a loader, and one on another thread, are not what training waits for.
func TestUpstream(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 50 {
		now := float64(20 * i)
		x.fetch(id, 1, recording.FetchNested, uint32(i), now+1, now+4)
		x.fetch(id, 2, recording.FetchOffThread, uint32(i), now, now+19)
		x.fetch(id, 0, first(i), uint32(i), now, now+5)
		x.step(id, now+20)
	}
	r := x.run()
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
}

// TestPreScan: statistics over the dataset before training do not train, whatever the loader.
func TestPreScan(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 100 {
		x.fetch(id, 0, first(i), uint32(i), float64(10*i), float64(10*i+9))
	}
	for i := range 60 {
		now := 1000 + float64(20*i)
		x.fetch(id, 1, first(i), uint32(i), now, now+2)
		x.step(id, now+20)
	}
	r := x.run()
	wants(t, "data wait share", r.Step.DataWaitShare, 0.1, 1e-9)
	if r.Loaders[0].Role != "other" || r.Loaders[1].Role != "training" {
		t.Errorf("roles %s, %s", r.Loaders[0].Role, r.Loaders[1].Role)
	}
}

// TestInterrupted: validation and checkpoints lie between steps and are none.
func TestInterrupted(t *testing.T) {
	r, truth := analyse(t, simulate.Job{Epochs: 4, Steps: 100, Workers: 2, Prefetch: 2, Build: constant(10 * ms), Handoff: ms / 10, Start: 30 * ms,
		Compute: 12 * ms, Depth: 0, Host: ms, SM: 0.8, Window: 100 * ms, Validation: 20, Checkpoint: 300 * ms})
	wants(t, "step", r.Step.MeanSeconds, 0.0131, 1e-4)
	g := r.GPUs[0]
	for name, want := range map[string]float64{"validation": 4 * 0.101, "checkpoint": 4 * 0.3, "epoch_start": 4 * 0.04, "startup": 0.2} {
		if got := float64(g.AccountsNS[name]) / 1e9; !near(got, want, 0.01*want+0.002) {
			t.Errorf("%s %.4f s, want %.4f", name, got, want)
		}
	}
	if got := g.AllocatedNS; got != truth.End-truth.Begin {
		t.Errorf("allocated %d of %d", got, truth.End-truth.Begin)
	}
	if r.Loaders[1].Role != "validation" || r.Loaders[1].Fetches != 80 {
		t.Errorf("loader 1: %+v", r.Loaders[1])
	}
	// 40.1 ms of 100 steps of 13.1 ms, validation and checkpoint.
	if share := r.Step.EpochStartShare.Or(0); !near(share, 0.0401/(0.0401+99*0.0131+0.013+0.401), 0.003) {
		t.Errorf("epoch start share %v", share)
	}
}

// TestShortEpochs: a loader that waits once every W fetches looks the same in short epochs as in long ones.
func TestShortEpochs(t *testing.T) {
	job := simulate.Job{Workers: 4, Prefetch: 2, Build: constant(400 * ms), Compute: 20 * ms, Depth: 0, SM: 0.8}
	for _, steps := range []int{20, 400} {
		job.Epochs, job.Steps = 800/steps, steps
		r, _ := analyse(t, job)
		wants(t, "data wait share", r.Step.DataWaitShare, 0.8, 0.01)
		wants(t, "step", r.Step.MeanSeconds, 0.1, 0.002)
	}
}

// TestNoSteadyState: every epoch has one step.
func TestNoSteadyState(t *testing.T) {
	r, _ := analyse(t, simulate.Job{Epochs: 40, Steps: 1, Workers: 2, Prefetch: 2, Build: constant(30 * ms), Start: 50 * ms, Compute: 10 * ms, SM: 0.5, Window: 100 * ms})
	if r.Step.N != 0 || r.Step.MeanSeconds.IsKnown() || !has(r, "no-steady-state") && !has(r, "epoch-start") {
		t.Errorf("n = %d, step %+v, verdicts %+v", r.Step.N, r.Step.MeanSeconds, r.Verdicts)
	}
	if share := r.Step.EpochStartShare.Or(0); !near(share, 80/90.0, 0.02) {
		t.Errorf("epoch start share %v", share)
	}
}

// TestAFullDiskKilledNobody: the agent saw the run's end, but its recording does not reach that far.
func TestAFullDiskKilledNobody(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	x.fetch(id, 0, 0, 0, 0, 1)
	x.SetManifest(recording.Manifest{Format: recording.Format, EndedBy: unit.Some(recording.EndedByCommand)})
	r := x.run()
	if len(r.Ranks) != 1 || r.Ranks[0].Ended != "running" || !r.Quality.Damage.Unfinished {
		t.Errorf("ranks %+v, damage %+v", r.Ranks, r.Quality.Damage)
	}
}

// TestHowAProcessEnded: one that did not say so was killed only where nothing speaks against it.
func TestHowAProcessEnded(t *testing.T) {
	for _, c := range []struct {
		code unit.Maybe[int]
		want string
	}{
		{unit.Some(0), "unknown"}, // os._exit(0)
		{unit.Some(3), "failed"},
		{unit.Some(137), "killed"},
		{unit.None[int]("a signal ended the command"), "killed"},
	} {
		x := newTape(t)
		id := x.rank(7, 0)
		x.fetch(id, 0, 0, 0, 0, 1)
		x.SetManifest(recording.Manifest{Format: recording.Format, EndedMonotonic: unit.Some(at(20000)), ExitCode: c.code})
		if r := x.run(); r.Ranks[0].Ended != c.want {
			t.Errorf("exit code %v: %s, want %s", c.code, r.Ranks[0].Ended, c.want)
		}
	}
}

// TestOwnBuilds: without workers the training process builds, and its costs stand behind the fetches.
func TestOwnBuilds(t *testing.T) {
	r, _ := analyse(t, simulate.Job{Epochs: 1, Steps: 100, Build: constant(40 * ms), Compute: 20 * ms, SM: 0.5, Window: 100 * ms})
	wants(t, "step", r.Step.MeanSeconds, 0.060, 1e-4)
	l := r.Loaders[0]
	wants(t, "build", l.BuildSeconds, 0.040, 1e-6)
	if cpu := l.CPUSeconds.Or(0); !near(cpu, 0.010, 1e-6) {
		t.Errorf("cpu %v s per batch", cpu)
	}
	if off := l.OffCPUSeconds.Or(0); !near(off, 0.025, 1e-6) {
		t.Errorf("off CPU %v s per batch", off)
	}
	if l.HandoffSeconds.State() != unit.Unsupported || l.WorkersSeen != 0 {
		t.Errorf("hand-off %v, %d workers", l.HandoffSeconds, l.WorkersSeen)
	}
}

// TestDeadRank: one rank dies; its GPU stays allocated.
func TestDeadRank(t *testing.T) {
	r, truth := analyse(t, simulate.Job{Ranks: 2, Epochs: 1, Steps: 8000, Workers: 2, Prefetch: 2, Build: constant(10 * ms), Compute: 12 * ms, SM: 0.8,
		Window: 100 * ms, Die: map[int]int{1: 100}})
	if len(r.Ranks) != 2 || r.Ranks[0].Ended != "normally" || r.Ranks[1].Ended != "killed" {
		t.Errorf("ranks %+v", r.Ranks)
	}
	if r.Ranks[1].Steps != 100 || r.Job.Steps != 8000 {
		t.Errorf("%d steps of rank 1, %d of the job", r.Ranks[1].Steps, r.Job.Steps)
	}
	dead := r.GPUs[1]
	if dead.AllocatedNS != truth.End-truth.Begin || dead.AccountsNS["idle_held"] < dead.AllocatedNS*9/10 {
		t.Errorf("the dead rank's GPU: %+v", dead.AccountsNS)
	}
}

// TestARankThatIsGoneWhileOthersTrain: how long before the others is known where the agent looked; a rank that is started again has
// not left, and one that outlives the observation still runs.
func TestARankThatIsGoneWhileOthersTrain(t *testing.T) {
	x := newTape(t)
	at := func(pid, number, restart int, gone float64, running bool) {
		id, _ := x.Declare(recording.Declaration{Producer: recording.ProducerMain, PID: pid, Rank: &number, Restart: &restart})
		for i := range 40 {
			x.fetch(id, 0, first(i), uint32(i), float64(1000*restart+20*i), float64(1000*restart+20*i+5))
		}
		x.AddNote(id, recording.EndedNote{T: uint64(gone * 1e6), Running: running})
	}
	at(10, 0, 0, 5000, false)
	at(11, 1, 0, 2000, false)
	at(12, 1, 1, 9000, true)
	at(13, 2, 0, 3000, false)
	r := x.run()
	want := []struct {
		early float64
		known bool
		ended string
	}{{4, true, ""}, {0, false, ""}, {0, false, "running"}, {6, true, ""}}
	for i, w := range want {
		row := r.Ranks[i]
		early, known := row.EndedEarlySeconds.Get()
		if known != w.known || !near(early, w.early, 1e-9) || w.ended != "" && row.Ended != w.ended {
			t.Errorf("row %d: rank %d, %v s early, %s; want %+v", i, row.Rank, row.EndedEarlySeconds, row.Ended, w)
		}
	}
}

// TestRestart: an elastic job starts rank 0 again.
func TestRestart(t *testing.T) {
	x := newTape(t)
	for restart := range 2 {
		number := 0
		id, _ := x.Declare(recording.Declaration{Producer: recording.ProducerMain, PID: 10 + restart, Rank: &number, Restart: &restart})
		for i := range 40 {
			now := float64(1000*restart + 20*i)
			x.fetch(id, 0, first(i), uint32(i), now, now+5)
			x.step(id, now+20)
		}
	}
	r := x.run()
	if r.Job.Ranks != 1 || len(r.Ranks) != 2 || r.Job.Steps != 80 {
		t.Errorf("%d ranks in %d rows, %d steps", r.Job.Ranks, len(r.Ranks), r.Job.Steps)
	}
	wants(t, "step", r.Step.MeanSeconds, 0.020, 1e-9)
}

// TestForkedChild: a child inherits its parent's rank, and fetches something of its own.
func TestForkedChild(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	number := 0
	child, _ := x.Declare(recording.Declaration{Producer: recording.ProducerMain, PID: 8, PPID: 7, Rank: &number})
	for i := range 60 {
		now := float64(20 * i)
		x.fetch(id, 0, first(i), uint32(i), now, now+5)
		x.step(id, now+20)
		if i > 10 {
			x.fetch(child, 0, 0, uint32(i), now, now+15)
		}
	}
	r := x.run()
	if len(r.Ranks) != 1 || r.Ranks[0].PID != 7 {
		t.Errorf("ranks %+v", r.Ranks)
	}
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
}

// TestTotalsOnly: every record was overwritten; the totals remain.
func TestTotalsOnly(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	x.AddNote(id, recording.SumsNote{Loader: 0, Fetches: unit.Some(uint64(1000)), WaitNS: unit.Some(uint64(3e9)), BetweenNS: unit.Some(uint64(9e9))})
	x.AddNote(id, recording.LostNote{Records: 4000})
	r := x.run()
	if len(r.Ranks) != 1 || !near(r.Ranks[0].DataWaitShare.Or(0), 0.25, 1e-9) {
		t.Fatalf("ranks %+v", r.Ranks)
	}
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	if v, _ := r.Step.DataWaitShare.Get(); v.Grade != "C" {
		t.Errorf("grade %s", v.Grade)
	}
	if r.Quality.Damage.Lost != 4000 {
		t.Errorf("lost %d", r.Quality.Damage.Lost)
	}
}

// holed is a recording of which something could not be read.
type holed struct {
	*recording.Memory
	damage recording.Damage
}

func (d holed) Damage() recording.Damage { return d.damage }

// TestEveryKindOfDamageIsTold: no count of a reader is lost on the way to the report.
func TestEveryKindOfDamageIsTold(t *testing.T) {
	for i := range reflect.TypeFor[recording.Damage]().NumField() {
		x := newTape(t)
		x.rank(7, 0)
		d := holed{Memory: x.Memory}
		field := reflect.ValueOf(&d.damage).Elem()
		name := field.Type().Field(i).Name
		field.Field(i).SetUint(3)
		r, err := Run([]recording.Reader{d}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Quality.Damage == (DamageReport{}) && name != "UnknownNotes" { // a later version's, and nothing of ours
			t.Errorf("%s: told as no damage", name)
		}
	}
}

// TestGap: records are missing in the middle; the step across the hole is none.
func TestGap(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 60 {
		now := float64(20 * i)
		if i >= 30 {
			now += 5000
		}
		if i == 30 {
			x.steps[id] += 250
		}
		x.fetch(id, 0, first(i), uint32(i), now, now+5)
		x.step(id, now+20)
	}
	r := x.run()
	wants(t, "step", r.Step.MeanSeconds, 0.020, 1e-9)
}

// TestBackwards: times that run backwards are left out and counted.
func TestBackwards(t *testing.T) {
	x := newTape(t)
	id := x.rank(7, 0)
	for i := range 60 {
		now := float64(20 * i)
		x.fetch(id, 0, first(i), uint32(i), now, now+5)
		x.fetch(id, 0, 0, uint32(i), now+5, now+1)
		x.step(id, now+20)
	}
	r := x.run()
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
	if len(r.Quality.Warnings) == 0 {
		t.Error("60 impossible fetches were left out without a word")
	}
}

// TestWhatNoSourceTells: an account into which nothing could be booked is left out, for its 0 would be a measurement.
func TestWhatNoSourceTells(t *testing.T) {
	for _, copies := range []float32{0, float32(math.NaN())} {
		x := newTape(t)
		id := x.rank(7, 0)
		agent, _ := x.Declare(recording.Declaration{Producer: recording.ProducerAgent, Host: "node0"})
		x.AddNote(agent, recording.GPUNote{GPU: 0, UUID: "GPU-1", Name: "x", Source: "nvml"})
		for i := range 60 {
			begin := float64(20 * i)
			x.fetch(id, 0, first(i), uint32(i), begin, begin+5)
			x.write(agent, recording.GPU{Begin: at(begin), End: at(begin + 20), SM: 0.5, Resident: 0.5, Copy: copies}.Encode())
		}
		g := x.run().GPUs[0]
		if _, there := g.AccountsNS["copy"]; there != (copies == 0) {
			t.Errorf("copies read as %v: accounts %v", copies, g.AccountsNS)
		}
		if _, there := g.AccountsNS["collective"]; there || g.CollectiveNS.IsKnown() {
			t.Errorf("nothing measures collectives: accounts %v, %v", g.AccountsNS, g.CollectiveNS)
		}
		var sum int64
		for _, ns := range g.AccountsNS {
			sum += ns
		}
		if sum != g.AllocatedNS || sum == 0 {
			t.Errorf("accounts sum to %d of %d", sum, g.AllocatedNS)
		}
	}
}

// TestLostRecords: a ring that was overrun loses records of steps. The steps that are left count as ever, none is made of what lies
// between, and how many there were is known from the totals.
func TestLostRecords(t *testing.T) {
	for _, optimizer := range []bool{true, false} {
		x := newTape(t)
		id := x.rank(7, 0)
		seq := uint32(0)
		kept := func(i int, r recording.Record) {
			seq++
			r.SetSeq(seq)
			if i < 400 || i >= 900 {
				if err := x.Records(id, []recording.Record{r}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 1000 {
			begin := 20 * float64(i)
			kept(i, recording.Fetch{Flags: first(i), Enter: at(begin), Exit: at(begin + 5), Batch: uint32(i), Thread: 1, CPU: recording.Unknown64}.Encode())
			if optimizer {
				kept(i, recording.Step{Begin: recording.Unknown64, End: at(begin + 20), Step: uint32(i + 1), Thread: 1, CPU: recording.Unknown64}.Encode())
			}
		}
		known := unit.Some[uint64]
		x.AddNote(id, recording.LostNote{Records: 500})
		x.AddNote(id, recording.SumsNote{Fetches: known(1000), WaitNS: known(5e9), BetweenNS: known(15e9), NoGrad: known(0)})
		r := x.run()
		wants(t, "step", r.Step.MeanSeconds, 0.020, 1e-9)
		wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
		if l := r.Loaders[0]; r.Job.Steps != 1000 || l.Fetches != 1000 || !near(l.WaitSeconds, 5, 1e-9) {
			t.Errorf("%d steps, %d fetches, %v s of waiting", r.Job.Steps, l.Fetches, l.WaitSeconds)
		}
		if r.Step.N < 490 || r.Step.N > 499 {
			t.Errorf("%d steps were measured, of 500 that are whole", r.Step.N)
		}
	}
}

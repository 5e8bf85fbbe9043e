package live

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
)

// machine is a Node with what tells it: tests speak in seconds.
type machine struct {
	*Node
	t     *testing.T
	agent *recording.Appender
}

const second = uint64(1e9)

func at(s float64) uint64 { return uint64(s * 1e9) }

func newMachine(t *testing.T, begin float64) *machine {
	t.Helper()
	m := &machine{Node: New(Options{Begin: at(begin), Lag: 2 * second, Forget: 100 * second}), t: t}
	sink := m.Agent()
	id, err := sink.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	if err != nil {
		t.Fatal(err)
	}
	m.agent = recording.NewAppender(sink, id)
	return m
}

// gpu names a GPU.
func (m *machine) gpu(ref uint16, uuid string) {
	m.ok(m.agent.Note(recording.GPUNote{GPU: ref, UUID: uuid, Name: "A100", Source: "dcgm", Grade: "A"}))
}

// windows tells what the counters of a GPU showed, in windows of a second.
func (m *machine) windows(ref uint16, begin, end float64, resident, sm float32, flags uint8) {
	nan := float32(math.NaN())
	for b := begin; b < end; b++ {
		m.ok(m.agent.Append(recording.GPU{Ref: ref, Flags: flags, Begin: at(b), End: at(b + 1), SM: sm, Resident: resident, Tensor: nan, DRAM: nan, Copy: nan,
			Power: nan, SMClock: nan, Memory: nan}.Encode()))
	}
}

func (m *machine) ok(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// proc is a process that tells.
type proc struct {
	m    *machine
	sink recording.Sink
	id   recording.StreamID
	out  *recording.Appender
}

func (m *machine) process(id Identity, d recording.Declaration) *proc {
	m.t.Helper()
	sink := m.Spool(id)
	stream, err := sink.Declare(d)
	m.ok(err)
	return &proc{m, sink, stream, recording.NewAppender(sink, stream)}
}

// train declares a training process on a GPU.
func (m *machine) train(pid int, script, gpu string, opened float64) *proc {
	return m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: pid, StartTicks: uint64(pid), Opened: at(opened),
		Argv: []string{"/home/me/" + script}, GPUUUID: &gpu})
}

// epoch tells an iterator that took as long, and its first fetch.
func (p *proc) epoch(begin, made, first float64, epoch uint32) {
	p.m.ok(p.out.Append(recording.Iterator{Begin: at(begin), End: at(begin + made), Epoch: epoch, Workers: 1, Length: 100, Prefetch: 2}.Encode(),
		recording.Fetch{Flags: recording.FetchFirst, Enter: at(begin + made), Exit: at(begin + made + first), Epoch: epoch, CPU: recording.Unknown64}.Encode()))
}

// steps tells n steps that wait and then compute.
func (p *proc) steps(begin float64, n int, wait, compute float64, epoch uint32) (end float64) {
	t := begin
	for i := range n {
		p.m.ok(p.out.Append(recording.Fetch{Enter: at(t), Exit: at(t + wait), Batch: uint32(i + 1), Epoch: epoch, CPU: recording.Unknown64}.Encode(),
			recording.Step{Begin: recording.Unknown64, End: at(t + wait + compute), Step: uint32(i + 1)}.Encode()))
		t += wait + compute
	}
	return t
}

func (p *proc) end(t float64) {
	p.m.ok(p.sink.Note(p.id, recording.EncodeNote(recording.EndedNote{T: at(t)})))
	p.sink.(recording.Ender).End(p.id)
}

// tenancyOf returns the one row of a job on a GPU.
func (m *machine) tenancyOf(gpu, job string) Tenancy {
	m.t.Helper()
	for _, t := range m.Snapshot().Tenancies {
		if t.GPU == gpu && t.Tenant.Job == job {
			return t
		}
	}
	m.t.Fatalf("no tenancy of %s on %s in %+v", job, gpu, m.Snapshot().Tenancies)
	return Tenancy{}
}

func (m *machine) rankOf(job string) Rank {
	m.t.Helper()
	for _, r := range m.Snapshot().Ranks {
		if r.Tenant.Job == job {
			return r
		}
	}
	m.t.Fatalf("no rank of %s", job)
	return Rank{}
}

// near holds a number of ns against one of seconds.
func near(t *testing.T, what string, ns uint64, seconds float64) {
	t.Helper()
	if got := float64(ns) / 1e9; math.Abs(got-seconds) > 1e-6 {
		t.Errorf("%s: %v s, want %v", what, got, seconds)
	}
}

func sum(t ledger.Totals) (all int64) {
	for _, n := range t.NS {
		all += n
	}
	return all
}

func TestOneJobIsCounted(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 10)
	m.Tick(at(11))
	p.epoch(12, 1, 2, 0)
	end := p.steps(15, 40, 0.3, 0.7, 0) // to 55
	m.windows(0, 0, 60, 0.7, 0.5, recording.GPUHeldKnown|recording.GPUHeld)
	m.Tick(at(57))

	r := m.rankOf("train.py")
	if r.Steps != 40 || r.Fetches != 41 || r.Epochs != 1 || !r.Running {
		t.Errorf("%+v", r)
	}
	near(t, "epoch start", r.EpochStart, 3)
	near(t, "wait", r.Wait, 40*0.3)
	near(t, "training", r.Training, end-15-0.7) // what follows the last fetch is not told yet
	if r.WaitClocked != 0 || r.HandOffSeen != 0 {
		t.Errorf("nothing told of exposure or hand-off: %+v", r)
	}
	p.end(56)
	m.Tick(at(63))
	x := m.tenancyOf("GPU-a", "train.py")
	if x.Running || sum(x.Books) != x.Books.Allocated {
		t.Errorf("%+v", x)
	}
	near(t, "allocated", uint64(x.Books.Allocated), 46) // from its ring to its end
	near(t, "SM seen", uint64(x.Activity.SMSeen*1e9), 46)
	near(t, "SM active", uint64(x.Activity.SMActive*1e9), 23)
	near(t, "wait at most", uint64(x.Books.WaitUpperBound), 12)
	near(t, "start-up", uint64(x.Books.NS[ledger.Startup]), 2)
	near(t, "epoch start account", uint64(x.Books.NS[ledger.EpochStart]), 3)
	h := m.Snapshot().Jobs[0].StepTimes
	if h.Count != 39 || math.Abs(h.Sum-39) > 1e-6 || h.AtMost(0)+h.AtMost(1)-h.AtMost(0) != 39 {
		t.Errorf("step times %+v", h)
	}
}

// The live book is the ledger's own: what one job on one GPU comes to is what a Book of the whole story says.
func TestTenancyIsTheLedgersBalance(t *testing.T) {
	m, book := newMachine(t, 10), ledger.NewBook(int64(at(10)), 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 10)
	p.epoch(11, 1, 1, 0)
	p.steps(13, 100, 0.25, 0.5, 0)
	m.windows(0, 10, 95, 0.6, 0.5, recording.GPUHeldKnown|recording.GPUHeld)
	for now := 11.0; now <= 100; now++ {
		m.Tick(at(now))
	}
	p.end(89)
	m.Tick(at(105))

	gpu := "GPU-a"
	agent, _ := book.Declare(recording.Declaration{Producer: recording.ProducerAgent})
	m.ok(book.Note(agent, recording.EncodeNote(recording.GPUNote{UUID: gpu})))
	main, _ := book.Declare(recording.Declaration{Producer: recording.ProducerMain, GPUUUID: &gpu})
	twin := &proc{m, book, main, recording.NewAppender(book, main)}
	twin.epoch(11, 1, 1, 0)
	twin.steps(13, 100, 0.25, 0.5, 0)
	own := m.agent
	m.agent = recording.NewAppender(book, agent)
	m.windows(0, 10, 95, 0.6, 0.5, recording.GPUHeldKnown|recording.GPUHeld)
	m.agent = own
	book.Close(int64(at(89)))
	want := book.Balances()[0].Totals
	if got := m.tenancyOf(gpu, "train.py").Books; got.NS != want.NS || got.Covered != want.Covered || got.WaitUpperBound != want.WaitUpperBound {
		t.Errorf("live %+v\nbook %+v", got, want)
	}
}

func TestDeviceClockTellsExposure(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	p.epoch(1, 0.5, 0.5, 0)
	p.steps(2, 10, 0.4, 0.6, 0) // records 3, 5, 7 … are fetches
	for i := range 8 {
		m.ok(p.out.Append(recording.Exposed{T: at(13), Idle: at(0.1), Span: recording.Unknown64, Fetch: uint32(3 + 2*i)}.Encode()))
	}
	r := m.rankOf("train.py")
	near(t, "wait", r.Wait, 4)
	near(t, "clocked", r.WaitClocked, 3.2)
	near(t, "exposed", r.Exposed, 0.8)
}

func TestHandOffIsWhatFollowsSending(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	p.epoch(1, 0.5, 0.5, 0)
	m.ok(p.out.Append(recording.Worker{T: at(1.2), PID: 8, Worker: 0, Epoch: 0}.Encode()))
	p.steps(2, 3, 0.4, 0.6, 0) // waits 2.0–2.4 for batch 1, 3.0–3.4 for 2, 4.0–4.4 for 3
	w := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerWorker, PID: 8, StartTicks: 8, Parent: 7})
	build := func(batch uint32, sent float64) recording.Record {
		return recording.Batch{Ref: recording.Unknown16, Received: at(1), Begin: at(1), End: at(1.5), Sent: at(sent), Batch: batch, Samples: 4}.Encode()
	}
	m.ok(w.out.Append(build(1, 1.9), build(2, 3.3))) // ready before it was asked for; sent in the middle of the wait; not told
	m.ok(w.out.Append(recording.Cost{CPU: at(0.3), ProcessCPU: at(0.3), RunQueue: at(0.1), Collate: recording.Unknown64, Bytes: recording.Unknown64,
		Files: 4, Requests: 0, Tensors: 2}.Encode()))
	m.Tick(at(5))
	r := m.rankOf("train.py")
	near(t, "seen", r.HandOffSeen, 0.8)
	near(t, "hand-off", r.HandOff, 0.4+0.1)
	near(t, "built", r.Workers.Build, 1)
	near(t, "CPU", r.Workers.CPU, 0.3)
	near(t, "CPU seen", r.Workers.CPUSeen, 0.5)
	near(t, "off CPU", r.Workers.OffCPU, 0.1)
	if r.Workers.Running != 1 || r.Workers.Batches != 2 || r.Workers.Files != 4 || r.Workers.IOSeen != 1 || r.Workers.ReadSeen != 0 {
		t.Errorf("%+v", r.Workers)
	}
	w.sink.(recording.Ender).End(w.id)
	if r := m.rankOf("train.py"); r.Workers.Running != 0 {
		t.Errorf("%+v", r.Workers)
	}
}

func TestJobsOfOneNameAreTwo(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	m.gpu(1, "GPU-b")
	a, b := m.train(7, "train.py", "GPU-a", 1), m.train(8, "train.py", "GPU-b", 2)
	m.Tick(at(3))
	m.tenancyOf("GPU-a", "train.py")
	m.tenancyOf("GPU-b", "train.py (2)")
	a.steps(3, 5, 0.1, 0.1, 0)
	a.end(5)
	m.Tick(at(6))
	c := m.train(9, "train.py", "GPU-a", 6) // started again
	c.steps(7, 5, 0.1, 0.1, 0)
	m.Tick(at(8))
	if r := m.rankOf("train.py"); r.Steps != 10 || !r.Running {
		t.Errorf("a job that is started again goes on: %+v", r)
	}
	b.end(8)
	m.Tick(at(9))
	m.Tick(at(50))
	m.Tick(at(200))
	if s := m.Snapshot(); len(s.Tenancies) != 1 || len(s.Ranks) != 1 {
		t.Errorf("what ended long ago is still there: %+v", s)
	}
}

func TestRanksOfOneLauncherAreOneJob(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	m.gpu(1, "GPU-b")
	rank := func(pid, launcher, n int, gpu string) *proc {
		world := 2
		return m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: pid, PPID: launcher, StartTicks: 1, Opened: at(1),
			Argv: []string{"train.py"}, Rank: &n, WorldSize: &world, GPUUUID: &gpu})
	}
	first := rank(10, 5, 0, "GPU-a")
	rank(11, 5, 1, "GPU-b")
	m.Tick(at(2))
	s := m.Snapshot()
	if len(s.Ranks) != 2 || s.Ranks[0].Tenant != s.Ranks[1].Tenant || s.Ranks[1].Rank.Or(-1) != 1 || s.Ranks[1].GPU != "GPU-b" {
		t.Errorf("%+v", s.Ranks)
	}
	first.end(3)
	m.Tick(at(4))
	if s = m.Snapshot(); s.Ranks[0].Running || !s.Ranks[1].Running {
		t.Errorf("a dead rank is not noticed: %+v", s.Ranks)
	}
}

func TestSharedGPUHasOneRow(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	a := m.train(7, "a.py", "GPU-a", 1)
	m.Tick(at(2))
	m.train(8, "b.py", "GPU-a", 4)
	m.windows(0, 0, 20, 0.9, 0.8, recording.GPUHeldKnown|recording.GPUHeld)
	for now := 5.0; now <= 12; now++ {
		m.Tick(at(now))
	}
	a.end(10)
	m.Tick(at(13))
	m.Tick(at(20))
	s := m.Snapshot()
	if len(s.Holders) != 1 || s.Holders[0].Tenant.Job != "b.py" {
		t.Errorf("holders %+v", s.Holders)
	}
	total := int64(0)
	for _, x := range s.Tenancies {
		total += x.Books.Allocated
	}
	near(t, "a alone", uint64(m.tenancyOf("GPU-a", "a.py").Books.Allocated), 4) // from 1 to the look at 5
	near(t, "all", uint64(total), 17)                                           // from 1 to 18: no time is booked twice
	m.tenancyOf("GPU-a", Shared)
}

func TestPodWithoutProcessesIsIdle(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	pod := []recording.Holder{{Namespace: "team", Pod: "bert-0", Container: "main"}}
	m.ok(m.agent.Note(recording.AllocationNote{T: at(5), Since: at(4), UUID: "GPU-a", By: recording.AllocatedByKubernetes, Holders: pod}))
	m.windows(0, 0, 110, 0, 0, recording.GPUHeldKnown)
	m.Tick(at(6))
	if g := m.Snapshot().GPUs[0].Assigned; !g.Or(false) {
		t.Errorf("assigned %v", g)
	}
	m.Tick(at(30))
	x := m.tenancyOf("GPU-a", "bert-0")
	if x.Tenant.Namespace != "team" || x.Tenant.Pod != "bert-0" {
		t.Errorf("%+v", x.Tenant)
	}
	near(t, "not held", uint64(x.Books.NS[ledger.NotHeld]), 23) // from 5 to 28
	gpu := "GPU-a"
	p := m.process(Identity{Folder: "uid", Namespace: "team", Pod: "bert-0"}, recording.Declaration{Producer: recording.ProducerMain, PID: 7, StartTicks: 7,
		Namespace: 99, Opened: at(30), Argv: []string{"x.py"}, Job: "bert", GPUUUID: &gpu})
	p.steps(31, 10, 0.1, 0.9, 0)
	m.Tick(at(42))
	m.tenancyOf("GPU-a", "bert") // a pod is what its training process says it is …
	p.end(41)
	m.Tick(at(43))
	m.Tick(at(60))
	if x := m.tenancyOf("GPU-a", "bert"); !x.Running { // … and stays so when that has ended
		t.Errorf("%+v", m.Snapshot().Tenancies)
	}
	m.ok(m.agent.Note(recording.AllocationNote{T: at(70), Since: at(60), UUID: "GPU-a", By: recording.AllocatedByKubernetes, Holders: []recording.Holder{}}))
	m.Tick(at(71))
	m.Tick(at(90))
	if s := m.Snapshot(); s.GPUs[0].Assigned.Or(true) || len(s.Holders) != 0 || s.Tenancies[0].Running {
		t.Errorf("%+v", s)
	}
}

// A drain tells of an end after the last Tick. The time until then is the process's.
func TestAnEndIsWhenItWasTold(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	m.Tick(at(2))
	p.steps(2, 5, 0.1, 0.9, 0) // to 7; then it saves
	m.Tick(at(10))
	p.end(12)
	m.Tick(at(13))
	m.Tick(at(30))
	near(t, "allocated", uint64(m.tenancyOf("GPU-a", "train.py").Books.Allocated), 11)
	m.Tick(at(110))
	m.rankOf("train.py") // 98 s after its end, which is less than it stays
}

// Whoever is silent for long under a scheduler is booked on; at its end no time is booked again.
func TestNoTimeIsBookedTwiceWhenASilentProcessEnds(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	m.ok(m.agent.Note(recording.AllocationNote{T: at(1), UUID: "GPU-a", By: recording.AllocatedBySlurm, Holders: []recording.Holder{{Job: "4711"}}}))
	p := m.train(7, "train.py", "GPU-a", 1)
	m.Tick(at(2))
	p.steps(2, 5, 0.1, 0.9, 0) // to 7
	for now := 8.0; now <= 300; now++ {
		m.Tick(at(now))
	}
	m.streams[p.id].ended = 0 // an end that nobody told
	p.sink.(recording.Ender).End(p.id)
	for now := 301.0; now <= 320; now++ {
		m.Tick(at(now))
	}
	near(t, "allocated", uint64(m.tenancyOf("GPU-a", "train.py").Books.Allocated), 317) // from 1 to 318
}

// The only GPU that a source lists is a guess: the process's own word counts more.
func TestAGuessedGPUGivesWayToTheProcessesWord(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: 7, StartTicks: 7, Opened: at(1), Argv: []string{"train.py"}})
	p.steps(1, 3, 0.1, 0.9, 0)
	m.Tick(at(4))
	if r := m.rankOf("train.py"); r.GPU != "GPU-a" {
		t.Errorf("it trains on %q", r.GPU)
	}
	m.ok(p.sink.Note(p.id, json.RawMessage(`{"note":"device","gpu_uuid":"GPU-b"}`)))
	m.Tick(at(5))
	if x := m.tenancyOf("GPU-b", "train.py"); !x.Running || m.tenancyOf("GPU-a", "train.py").Running {
		t.Errorf("%+v", m.Snapshot().Tenancies)
	}
}

// A GPU that only another process named is not the only one there is.
func TestAnotherProcessesGPUIsNoGuess(t *testing.T) {
	m := newMachine(t, 0)
	m.train(7, "a.py", "GPU-a", 1)
	p := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: 8, StartTicks: 8, Opened: at(1), Argv: []string{"b.py"}})
	p.steps(1, 3, 0.1, 0.9, 0)
	m.Tick(at(4))
	if r := m.rankOf("b.py"); r.GPU != "" {
		t.Errorf("it is said to train on %q", r.GPU)
	}
}

// A ring that was read to its end and still lies there is not counted again by the next agent.
func TestAnEndedRingIsNotCountedAgain(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	p.steps(2, 20, 0.1, 0.9, 0)
	m.Tick(at(22))
	p.end(22)
	m.Tick(at(23))
	n := newMachine(t, 24)
	m.ok(n.Restore(m.State("boot"), "boot"))
	q := n.train(7, "train.py", "GPU-a", 1)
	q.steps(2, 20, 0.1, 0.9, 0)
	q.end(24.5)
	n.Tick(at(25))
	if r := n.rankOf("train.py"); r.Steps != 20 {
		t.Errorf("%d steps", r.Steps)
	}
}

// An agent that ends again before it has met what an earlier one counted forgets neither that nor the time.
func TestASecondRestartForgetsNothing(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	p.steps(2, 20, 0.1, 0.9, 0)
	m.Tick(at(22))
	between := newMachine(t, 30)
	m.ok(between.Restore(m.State("boot"), "boot"))
	between.Tick(at(32))
	n := newMachine(t, 40)
	m.ok(n.Restore(between.State("boot"), "boot"))
	n.gpu(0, "GPU-a")
	q := n.train(7, "train.py", "GPU-a", 1)
	q.steps(2, 50, 0.1, 0.9, 0)
	n.Tick(at(42))
	n.Tick(at(54.5))
	if r := n.rankOf("train.py"); r.Steps != 50 {
		t.Errorf("%d steps", r.Steps)
	}
	allocated := float64(n.tenancyOf("GPU-a", "train.py").Books.Allocated) / 1e9
	if allocated < 39 { // from 1 to 40 at the least: the time of both restarts is booked
		t.Errorf("%v s are booked", allocated)
	}
}

// A process that lies about time costs no more than its bound.
func TestSpansOfTheFutureAreBounded(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	m.Tick(at(2))
	p.steps(2, 1, 0.1, 0.1, 0)
	m.Tick(at(3))
	step := recording.Step{Begin: recording.Unknown64, End: at(1e6), Step: 1}.Encode()
	for range 2 * mostPending {
		m.ok(p.out.Append(step))
	}
	if late := m.devices["GPU-a"].episodes[0].totals().Late; late < mostPending-10 {
		t.Errorf("%d of %d were refused", late, 2*mostPending)
	}
}

// A scheduler calls a job by its number, and its processes by its name as well: one row.
func TestSchedulersJobIsWhatItsProcessesCallIt(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	m.ok(m.agent.Note(recording.AllocationNote{T: at(1), UUID: "GPU-a", By: recording.AllocatedBySlurm, Holders: []recording.Holder{{Job: "4711"}}}))
	gpu := "GPU-a"
	p := m.process(Identity{Folder: "4711"}, recording.Declaration{Producer: recording.ProducerMain, PID: 7, StartTicks: 7, Opened: at(2), Job: "resnet-4711", GPUUUID: &gpu})
	m.Tick(at(3))
	p.steps(3, 5, 0.1, 0.9, 0)
	p.end(8)
	m.Tick(at(9))
	m.Tick(at(30))
	s := m.Snapshot()
	if len(s.Tenancies) != 1 || s.Tenancies[0].Tenant.Job != "resnet-4711" || !s.Tenancies[0].Running {
		t.Errorf("%+v", s.Tenancies)
	}
}

// A loader that the hook does not see may keep the process waiting: what it did between its kernels is not known.
func TestUnseenLoaderLeavesHostTimeOpen(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "dali.py", "GPU-a", 1)
	m.windows(0, 0, 320, 0.4, 0.3, recording.GPUHeldKnown|recording.GPUHeld)
	var before ledger.Totals
	for i := range 300 {
		m.ok(p.out.Append(recording.Step{Begin: recording.Unknown64, End: at(float64(i + 2)), Step: uint32(i + 1)}.Encode()))
		m.Tick(at(float64(i + 3)))
		now := m.tenancyOf("GPU-a", "dali.py").Books
		for a, ns := range before.NS {
			if now.NS[a] < ns {
				t.Fatalf("account %v went back", ledger.Account(a))
			}
		}
		before = now
	}
	if host := float64(before.NS[ledger.Host]) / 1e9; host < 0.6*95 || host > 0.6*100 { // of the first hundred steps
		t.Errorf("%v s are the host's", host)
	}
	if open := float64(before.NS[ledger.Unattributed]) / 1e9; open < 0.6*190 || sum(before) != before.Allocated {
		t.Errorf("%v s are left open in %+v", open, before)
	}
}

// What the counters say of themselves decides: no counters and contradicting ones are not idleness.
func TestUntrustedIsNotIdle(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	m.Tick(at(2))
	p.steps(2, 20, 0.1, 0.9, 0)
	m.windows(0, 0, 10, 0, 0.9, recording.GPUUntrusted|recording.GPUHeldKnown|recording.GPUHeld)
	m.Tick(at(25)) // after 10 no window came
	x := m.tenancyOf("GPU-a", "train.py")
	near(t, "untrusted", uint64(x.Activity.Untrusted*1e9), 9)
	if x.Activity.SMSeen != 0 || x.Books.NS[ledger.IdleHeld] != 0 || x.Books.NS[ledger.Host] != 0 || x.Books.Covered != 0 {
		t.Errorf("%+v", x)
	}
}

func TestLostRecordsAreCounted(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	var some []recording.Record
	for _, seq := range []uint32{4, 5, 9} { // 1–3 and 6–8 were overwritten
		r := recording.Step{Begin: recording.Unknown64, End: at(float64(seq)), Step: seq}.Encode()
		r.SetSeq(seq)
		some = append(some, r)
	}
	m.ok(p.sink.Records(p.id, some))
	if h := m.rankOf("train.py").Hook; h.Records != 3 || h.Lost != 6 {
		t.Errorf("%+v", h)
	}
}

func TestRestartGoesOn(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 10)
	m.Tick(at(11))
	p.epoch(11, 1, 1, 0)
	p.steps(13, 20, 0.5, 0.5, 0) // to 33
	m.windows(0, 0, 33, 0.5, 0.4, recording.GPUHeldKnown|recording.GPUHeld)
	m.Tick(at(33))
	before := m.tenancyOf("GPU-a", "train.py").Books
	kept, err := json.Marshal(m.State("boot"))
	m.ok(err)

	n := newMachine(t, 50) // nobody looked from 33 to 50
	var s State
	m.ok(json.Unmarshal(kept, &s))
	m.ok(n.Restore(&s, "boot"))
	for _, row := range n.Snapshot().Tenancies {
		if !row.Carried || row.Books.Allocated != int64(at(33-10)) || row.Books.NS[ledger.EpochStart] != before.NS[ledger.EpochStart] {
			t.Errorf("restored %+v, was %+v", row, before)
		}
	}
	n.gpu(0, "GPU-a")
	q := n.train(7, "train.py", "GPU-a", 10) // the same ring is read again from its start
	q.epoch(11, 1, 1, 0)
	q.steps(13, 20, 0.5, 0.5, 0)
	q.steps(33, 120, 0.5, 0.5, 0) // 17 of them while nobody looked
	n.Tick(at(51))
	n.windows(0, 50, 160, 0.5, 0.4, recording.GPUHeldKnown|recording.GPUHeld)
	n.Tick(at(153.2))
	r := n.rankOf("train.py")
	if r.Steps != 140 || r.Hook.Lost != 0 || !r.Carried {
		t.Errorf("%+v", r)
	}
	near(t, "wait", r.Wait, 70)
	x := n.tenancyOf("GPU-a", "train.py")
	if !x.Running || !x.Carried || sum(x.Books) != x.Books.Allocated {
		t.Errorf("%+v", x)
	}
	near(t, "allocated", uint64(x.Books.Allocated), 140) // from 10 to 150, the outage included
	for a, ns := range before.NS {
		if x.Books.NS[a] < ns {
			t.Errorf("account %v went back", ledger.Account(a))
		}
	}
	settled := 10 + float64(before.Allocated)/1e9
	near(t, "nobody knows", uint64(x.Books.NS[ledger.Unattributed]-x.Books.WaitUpperBound), 50-settled)
}

func TestStateOfAnotherBootIsRefused(t *testing.T) {
	m := newMachine(t, 0)
	s := m.State("one")
	n := newMachine(t, 10)
	if err := n.Restore(s, "two"); err == nil {
		t.Error("a state of another boot was taken")
	}
	s.At = at(100)
	if err := n.Restore(s, "one"); err == nil {
		t.Error("a state of a time to come was taken")
	}
}

func TestDurationBuckets(t *testing.T) {
	for _, s := range []float64{1e-9, 0.0009, 0.001, 0.0625, 0.07, 0.5, 0.5000001, 1, 1.0000001, 3, 63.9, 64, 65, 1000} {
		b := bucket(s)
		lower, upper := math.Exp2(float64(b-1)/8), math.Exp2(float64(b)/8)
		if !(s > lower*(1-1e-12) && s <= upper*(1+1e-12)) {
			t.Errorf("%v s in bucket %d, which is (%v, %v]", s, b, lower, upper)
		}
	}
	var d Durations
	for _, s := range []float64{0, 0.25, 0.5, 0.5000001, 1, 2, -1, math.NaN(), math.Inf(1)} {
		d.Add(s)
	}
	if d.Count != 6 || d.AtMost(-2) != 2 || d.AtMost(-1) != 3 || d.AtMost(0) != 5 || d.AtMost(1) != 6 {
		t.Errorf("%+v: %d %d %d %d", d, d.AtMost(-2), d.AtMost(-1), d.AtMost(0), d.AtMost(1))
	}
}

package load

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// tape is a recording whose streams are written by hand.
type tape struct {
	*recording.Memory
	t *testing.T
}

func newTape(t *testing.T, m recording.Manifest) tape { return tape{recording.NewMemory(m), t} }

func (x tape) declare(d recording.Declaration) recording.StreamID {
	id, err := x.Declare(d)
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

func (x tape) main(pid int) recording.StreamID {
	return x.declare(recording.Declaration{Producer: recording.ProducerMain, PID: pid})
}

func (x tape) worker(pid, parent int) recording.StreamID {
	return x.declare(recording.Declaration{Producer: recording.ProducerWorker, PID: pid, Parent: parent})
}

func (x tape) load() *Job {
	x.t.Helper()
	return whole(x.t, x)
}

// whole surveys a job and loads all its ranks.
func whole(t *testing.T, nodes ...recording.Reader) *Job {
	t.Helper()
	j, err := Survey(nodes)
	for i := 0; err == nil && i < len(j.Ranks); i++ {
		var reading Reading
		reading, err = j.Ranks[i].Load(&Room{})
		j.Reading.Add(reading)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range j.Nodes {
		for _, g := range n.GPUs {
			if _, err := g.Load(&Room{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return j
}

func fetch(loader uint16, epoch, batch uint32, enter, exit uint64) recording.Record {
	return recording.Fetch{Ref: loader, Enter: enter, Exit: exit, Batch: batch, Epoch: epoch, CPU: recording.Unknown64}.Encode()
}

func batch(index, resumes uint32, begin, end uint64) recording.Record {
	return recording.Batch{Ref: recording.Unknown16, Begin: begin, End: end, Sent: end, Batch: index, Resumes: resumes, Samples: 4, Worker: recording.Unknown32}.Encode()
}

// TestWorkers: workers find their loader through the WORKER record of their pid, the last one before their first batch; a
// persistent worker that was reset builds for a later epoch.
func TestWorkers(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	early := x.worker(50, 7) // its records stand before those of its parent
	x.Add(early, batch(0, 0, 100, 200), batch(2, 0, 200, 300), batch(0, 1, 500, 600))
	main := x.main(7)
	x.Add(main, recording.Worker{Ref: 3, T: 90, PID: 50, Worker: 0, Epoch: 4}.Encode(),
		recording.Worker{Ref: 3, T: 91, PID: 51, Worker: 1, Epoch: 4}.Encode(),
		recording.Worker{Ref: 5, T: 900, PID: 50, Worker: 2, Epoch: 0}.Encode(), // the pid again, for another loader
		fetch(3, 4, 0, 100, 210))
	late := x.worker(50, 7)
	x.Add(late, batch(2, 0, 1000, 1100))
	stray := x.worker(99, 98)
	x.Add(stray, batch(0, 0, 10, 20))
	j := x.load()
	r := j.Ranks[0]
	if len(r.Loaders) != 2 || r.Loaders[0].ID != 3 || r.Loaders[1].ID != 5 {
		t.Fatalf("loaders %+v", r.Loaders)
	}
	builds := r.Loaders[0].Builds
	if len(builds) != 1 || builds[0].Worker != 0 || len(builds[0].Batches) != 3 || builds[0].Batches[0].Epoch != 4 || builds[0].Batches[2].Epoch != 5 {
		t.Errorf("builds of loader 3: %+v", builds)
	}
	if b := r.Loaders[1].Builds; len(b) != 1 || b[0].Worker != 2 {
		t.Errorf("builds of loader 5: %+v", b)
	}
	if j.Reading.Orphans != 1 {
		t.Errorf("%d orphans", j.Reading.Orphans)
	}
}

// TestWatched: builders that are not PyTorch's have no WORKER record; they name their parent.
func TestWatched(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	main := x.main(7)
	x.AddNote(main, recording.LoaderNote{Loader: 2, Kind: "watch", Dataset: "mine"})
	x.Add(main, fetch(2, 0, 0, 100, 210))
	builder := x.worker(60, 7)
	x.Add(builder, batch(0, 0, 10, 20))
	r := x.load().Ranks[0]
	if l := r.Loaders[0]; l.ID != 2 || len(l.Builds) != 1 || l.Note.Dataset != "mine" {
		t.Errorf("loader %+v", l)
	}
}

// TestBuildersOfEveryEpoch: processes without a number that are made anew every epoch are as many workers as build at one time.
func TestBuildersOfEveryEpoch(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	main := x.main(7)
	x.AddNote(main, recording.LoaderNote{Loader: 2, Kind: "watch"})
	x.Add(main, fetch(2, 0, 0, 100, 210))
	for epoch := range 50 {
		for worker := range 3 {
			begin := uint64(1000*epoch + 10*worker)
			x.Add(x.worker(100+3*epoch+worker, 7), batch(0, 0, begin+100, begin+200), batch(1, 0, begin+800, begin+900))
		}
	}
	if n := x.load().Ranks[0].Loaders[0].Workers(); n != 3 {
		t.Errorf("%d workers, want 3", n)
	}
}

// TestBuilderThreads: what threads of the training process build belongs to the loader it watches, also where they began before
// it fetched, in a stream of its own; without such a loader it is nobody's, and counted.
func TestBuilderThreads(t *testing.T) {
	for _, kind := range []string{"watch", "torch"} {
		x := newTape(t, recording.Manifest{})
		early := x.worker(7, 1)
		x.Add(early, batch(0, 0, 10, 20))
		main := x.main(7)
		x.AddNote(main, recording.LoaderNote{Loader: 2, Kind: kind})
		x.AddNote(main, recording.SumsNote{Loader: 31, Batches: unit.Some(uint64(1))})
		x.Add(main, fetch(2, 0, 0, 100, 210), batch(1, 0, 30, 50))
		j := x.load()
		if len(j.Ranks) != 1 || len(j.Ranks[0].Loaders) != 1 {
			t.Fatalf("%s: %+v", kind, j.Ranks)
		}
		built := 0
		for _, b := range j.Ranks[0].Loaders[0].Builds {
			if built += len(b.Batches); b.Own {
				t.Errorf("%s: the training thread is said to build", kind)
			}
		}
		if want := map[string]int{"watch": 2}[kind]; built != want || j.Reading.Orphans != uint64(2-want) {
			t.Errorf("%s: %d batches of the loader and %d of nobody", kind, built, j.Reading.Orphans)
		}
	}
}

// TestOwnCosts: without workers a COST belongs to the last fetch of its loader.
func TestOwnCosts(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	main := x.main(7)
	for i := range uint64(3) {
		x.Add(main, fetch(0, 0, uint32(i), 1e9*i, 1e9*i+40e6))
		if i != 1 { // counters are not read for every batch
			x.Add(main, recording.Cost{CPU: 10e6, ProcessCPU: 11e6, RunQueue: recording.Unknown64, Collate: recording.Unknown64,
				Bytes: recording.Unknown64, Files: 3, Requests: recording.Unknown32, Tensors: 2}.Encode())
		}
	}
	b := x.load().Ranks[0].Loaders[0].Builds
	if len(b) != 1 || b[0].Costs.Len() != 2 {
		t.Fatalf("builds %+v", b)
	}
	for field, want := range map[int]float64{CostWall: 0.040, CostCPU: 0.010, CostFiles: 3, CostTensors: 2, CostMeasured: 0.040} {
		sum, weight := b[0].Costs.Sum(field, nil)
		if weight != 2 || abs(sum/weight-want) > 1e-6 {
			t.Errorf("field %d: %v of %v batches, want %v", field, sum/weight, weight, want)
		}
	}
	if _, weight := b[0].Costs.Sum(CostRunQueue, nil); weight != 0 {
		t.Error("an unknown run queue has become a number")
	}
}

// TestSeveral: one COST for four batches is spread over them.
func TestSeveral(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	main := x.main(7)
	x.Add(main, fetch(0, 0, 0, 0, 1), recording.Worker{PID: 50, T: 1}.Encode())
	w := x.worker(50, 7)
	for i := range uint32(4) {
		x.Add(w, batch(i, 0, uint64(i)*100+10, uint64(i)*100+60))
	}
	x.Add(w, recording.Cost{Flags: recording.CostSeveral, CPU: 80, ProcessCPU: 80, RunQueue: 0, Collate: 0, Bytes: 400, Files: 8, Requests: 0, Tensors: 4}.Encode())
	b := x.load().Ranks[0].Loaders[0].Builds[0]
	if sum, weight := b.Costs.Sum(CostCPU, nil); weight != 4 || abs(sum-80e-9) > 1e-15 {
		t.Errorf("cpu %v over %v batches", sum, weight)
	}
	if _, weight := b.Costs.Sum(CostTensors, nil); weight != 0 {
		t.Error("the number of batches was taken for tensors")
	}
}

// TestSleeps: what the threads of a worker slept is told by its voluntary switches, for the batches whose counters were read.
func TestSleeps(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	main := x.main(7)
	x.Add(main, fetch(0, 0, 0, 0, 1), recording.Worker{PID: 50, T: 1}.Encode())
	w := x.worker(50, 7)
	for i := range uint32(3) {
		x.Add(w, batch(i, 0, uint64(i)*100+10, uint64(i)*100+60), recording.Cost{CPU: 20, ProcessCPU: 20}.Encode())
		switch i {
		case 0:
			x.Add(w, recording.IO{Voluntary: 3000, Involuntary: 7}.Encode())
		case 1:
			x.Add(w, recording.IO{Voluntary: recording.Unknown64, Involuntary: 7}.Encode())
		}
	}
	if sum, weight := x.load().Ranks[0].Loaders[0].Builds[0].Costs.Sum(CostSleeps, nil); sum != 3000 || weight != 1 {
		t.Errorf("%v sleeps in %v batches", sum, weight)
	}
}

// TestTwice: an agent that was restarted read a ring twice.
func TestTwice(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	a, b := x.main(7), x.main(7)
	var all []recording.Record
	for i := range uint64(10) {
		f := fetch(0, 0, uint32(i), 100*i, 100*i+50)
		f.SetSeq(uint32(2*i + 1))
		s := recording.Step{Begin: recording.Unknown64, End: 100*i + 90, Step: uint32(i + 1), CPU: recording.Unknown64}.Encode()
		s.SetSeq(uint32(2*i + 2))
		all = append(all, f, s)
	}
	_ = x.Records(b, all[8:])
	_ = x.Records(a, all[:14])
	j := x.load()
	if len(j.Ranks) != 1 || len(j.Ranks[0].Fetches) != 10 || len(j.Ranks[0].Steps) != 10 {
		t.Fatalf("%d ranks, %d fetches, %d steps", len(j.Ranks), len(j.Ranks[0].Fetches), len(j.Ranks[0].Steps))
	}
}

// TestExposed: the device's clock answers late, and sometimes not at all.
// TestReplaced: a script that replaced itself is one rank with a row per program, each with its own numbers and builders.
func TestReplaced(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	at := func(p recording.Producer, pid, parent int, opened uint64) recording.StreamID {
		return x.declare(recording.Declaration{Producer: p, PID: pid, Parent: parent, Opened: opened})
	}
	later, first := at(recording.ProducerMain, 7, 0, 300), at(recording.ProducerMain, 7, 0, 100)
	early, late := at(recording.ProducerWorker, 8, 7, 150), at(recording.ProducerWorker, 9, 7, 350)
	x.Add(first, fetch(0, 0, 0, 110, 120), fetch(0, 0, 1, 130, 150))
	x.Add(later, fetch(0, 0, 0, 310, 320))
	for id, n := range map[recording.StreamID]uint64{first: 2, later: 1} {
		x.AddNote(id, recording.LoaderNote{Loader: 0, Kind: "watch"})
		x.AddNote(id, recording.SumsNote{Loader: 0, Fetches: unit.Some(n)})
	}
	x.Add(early, batch(0, 0, 101, 119))
	x.Add(late, batch(0, 0, 301, 319))
	j := x.load()
	if len(j.Ranks) != 2 || j.Ranks[0].Number != j.Ranks[1].Number || !j.Ranks[0].Replaced || j.Ranks[1].Replaced {
		t.Fatalf("ranks %+v", j.Ranks)
	}
	for i, n := range []int{2, 1} {
		l := j.Ranks[i].Loaders[0]
		if l.Fetches != n || l.Sums.Fetches.Or(0) != uint64(n) || len(l.Builds) != 1 || l.Builds[0].PID != 8+i {
			t.Errorf("program %d: %+v", i+1, l)
		}
	}
}

func TestExposed(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	main := x.main(7)
	for i := range uint32(20) {
		x.Add(main, fetch(0, 0, i, uint64(i)*100, uint64(i)*100+50))
	}
	for _, seq := range []uint32{1, 2, 5, 4, 20, 77} {
		x.Add(main, recording.Exposed{Idle: uint64(10 * seq), Fetch: seq}.Encode())
	}
	j := x.load()
	r := j.Ranks[0]
	for i, want := range map[int]int64{0: 10, 1: 20, 2: Unknown, 3: 40, 4: 50, 19: 50} { // never more than the wait
		if got := r.Fetches[i].Idle; got != want {
			t.Errorf("fetch %d: idle %d, want %d", i, got, want)
		}
	}
	if r.Exposures != 5 || j.Reading.Bad != 1 {
		t.Errorf("%d exposures, %d bad", r.Exposures, j.Reading.Bad)
	}
}

// TestDisjoint: two agents watched the same GPU, and windows came late.
func TestDisjoint(t *testing.T) {
	x := newTape(t, recording.Manifest{})
	for _, begin := range []uint64{100, 150} {
		id := x.declare(recording.Declaration{Producer: recording.ProducerAgent})
		x.AddNote(id, recording.GPUNote{GPU: 4, UUID: "GPU-1"})
		for i := range uint64(3) {
			x.Add(id, recording.GPU{Ref: 4, Begin: begin + 100*i, End: begin + 100*i + 100, SM: 0.5, Resident: 1.01, Copy: 7}.Encode())
		}
	}
	n := x.load().Nodes[0]
	if len(n.GPUs) != 1 {
		t.Fatalf("%d GPUs", len(n.GPUs))
	}
	end, covered := int64(0), int64(0)
	for _, w := range n.GPUs[0].Windows {
		if w.Begin < end {
			t.Errorf("window [%d, %d) overlaps the one before it", w.Begin, w.End)
		}
		end = w.End
		covered += w.End - w.Begin
		if !w.Untrusted || w.Resident != 1 {
			t.Errorf("window %+v: a copy engine was busy seven times", w)
		}
	}
	if covered != 350 {
		t.Errorf("%d ns covered", covered)
	}
}

// TestClocks: two nodes whose monotonic clocks began years apart.
func TestClocks(t *testing.T) {
	a, b := newTape(t, recording.Manifest{Host: "a"}), newTape(t, recording.Manifest{Host: "b"})
	for i, x := range []tape{a, b} {
		id := x.main(7)
		offset := uint64(i) * 3e16
		x.Add(id, fetch(0, 0, 0, 1e9+offset, 2e9+offset))
		x.AddNote(id, recording.ClockNote{Monotonic: 1e9 + offset, Realtime: 1.7e18})
		x.AddNote(id, recording.ClockNote{Monotonic: 2e9 + offset, Realtime: 1.7e18 + 1e9 + 500})
	}
	j := whole(t, a, b)
	if d := j.Nodes[0].Begin + j.Nodes[0].Shift - j.Nodes[1].Begin - j.Nodes[1].Shift; d != 0 {
		t.Errorf("the nodes begin %d ns apart", d)
	}
	if j.Nodes[0].Drift != 500 || j.Ranks[0].Number == j.Ranks[1].Number {
		t.Errorf("drift %d, ranks %d and %d", j.Nodes[0].Drift, j.Ranks[0].Number, j.Ranks[1].Number)
	}
}

// TestMiddle: of any two readings, missing ones and the smallest that a float tells apart among them.
func TestMiddle(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	reading := func() float32 {
		v := math.Float32frombits(r.Uint32() &^ (1 << 31))
		switch r.IntN(8) {
		case 0:
			return nan
		case 1:
			return math.Float32frombits(r.Uint32() >> uint(9+r.IntN(23)))
		}
		if !(v <= 1e30) {
			return float32(r.IntN(3))
		}
		return v
	}
	for range 1_000_000 {
		a, b := reading(), reading()
		if r.IntN(4) == 0 {
			b = a * (1 + float32(r.IntN(9)-4)*0x1p-23)
		}
		want, got := mix(a, 1, b, 1), middle(a, b)
		if got != want && (got == got || want == want) {
			t.Fatalf("the middle of %g and %g is %g, want %g", a, b, got, want)
		}
	}
}

// TestSeries: a full series halves its resolution and keeps its sums.
func TestSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := newSeries(2, 64)
	var sum, weight, known, knownWeight float64
	for i := range int64(1000) {
		w, v, u := float64(1+r.IntN(3)), r.Float32(), r.Float32()
		if i%2 == 0 {
			u = nan
		} else {
			known, knownWeight = known+w*float64(u), knownWeight+w
		}
		s.add(i, i+1, w, v, u)
		sum, weight = sum+w*float64(v), weight+w
	}
	if s.Len() > 64 {
		t.Errorf("%d readings kept", s.Len())
	}
	got, n := s.Sum(0, nil)
	if abs(got-sum) > 1e-3 || n != weight {
		t.Errorf("Σ %v of %v, want %v of %v", got, n, sum, weight)
	}
	for _, keep := range []func(int64) bool{nil, func(t int64) bool { return t%3 == 0 }} {
		sums, weights := s.Sums(keep)
		for field := range 2 {
			if sum, weight := s.Sum(field, keep); sums[field] != sum || weights[field] != weight {
				t.Errorf("field %d: Σ %v of %v, and %v of %v among all", field, sum, weight, sums[field], weights[field])
			}
		}
	}
	if got, n := s.Sum(1, nil); abs(got/n-known/knownWeight) > 0.02 {
		t.Errorf("mean of the known %v, want about %v", got/n, known/knownWeight)
	}
}

// TestManifestBounds: the agent watched before the job began and after it ended.
func TestManifestBounds(t *testing.T) {
	x := newTape(t, recording.Manifest{StartedMonotonic: 500, EndedMonotonic: unit.Some(uint64(9000))})
	x.Add(x.main(7), fetch(0, 0, 0, 1000, 2000))
	if n := x.load().Nodes[0]; n.Begin != 500 || n.End != 9000 {
		t.Errorf("observed from %d to %d", n.Begin, n.End)
	}
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}

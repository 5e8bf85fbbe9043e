package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/datawait/datawait/probe/recording"
)

// What a ring says as an agent would let one user tell the machine's counters to all.
func TestARingIsNoAgent(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerAgent, PID: 7})
	m.ok(p.out.Note(recording.GPUNote{GPU: 0, UUID: "GPU-a", Name: "not an A100"}))
	m.ok(p.out.Note(recording.GPUNote{GPU: 1, UUID: "GPU-b"}))
	m.ok(p.out.Note(recording.AllocationNote{T: at(1), UUID: "GPU-a", By: recording.AllocatedByKubernetes, Holders: []recording.Holder{{Pod: "victim"}}}))
	m.ok(p.out.Append(recording.GPU{Begin: at(1), End: at(2), SM: 1}.Encode(), recording.Machine{Cores: 1e9}.Encode()))
	m.Tick(at(5))
	s := m.Snapshot()
	if len(s.GPUs) != 1 || s.GPUs[0].Name != "A100" || s.GPUs[0].Window != 0 || len(s.Holders) != 0 || s.Machine.Cores.Or(0) != 0 {
		t.Errorf("%+v", s)
	}
}

// Rings lie about times and about what their headers count, up and down.
func TestNoLieTakesACounterBack(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	w := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerWorker, PID: 8, Parent: 7})
	before := Rank{}
	for i := range 200 {
		m.ok(p.out.Append(recording.Fetch{Enter: 0, Exit: recording.Latest - 1, Batch: uint32(i)}.Encode(), recording.Mark{Ref: uint16(recording.MarkCheckpoint), End: recording.Latest - 1}.Encode()))
		m.ok(w.out.Append(recording.Batch{End: recording.Latest - 1}.Encode(), recording.IO{RChar: math.MaxUint64 / 2}.Encode()))
		for _, lie := range []uint64{math.MaxUint64 / 2, math.MaxUint64, recording.Latest - 1, 5, 0, 100} {
			m.See(p.id, recording.RingHeader{OwnTime: lie, OwnLooks: lie, HookErrors: lie})
			r := m.rankOf("train.py")
			for name, c := range map[string][2]uint64{"wait": {before.Wait, r.Wait}, "training": {before.Training, r.Training}, "checkpoint": {before.Checkpoint, r.Checkpoint},
				"build": {before.Workers.Build, r.Workers.Build}, "read": {before.Workers.ReadBytes, r.Workers.ReadBytes},
				"own": {before.Hook.OwnTime, r.Hook.OwnTime}, "looks": {before.Hook.Looks, r.Hook.Looks}, "errors": {before.Hook.Errors, r.Hook.Errors}} {
				if c[1] < c[0] {
					t.Fatalf("%s fell from %d to %d", name, c[0], c[1])
				}
			}
			before = r
		}
	}
	if before.Hook.Looks > recording.Latest { // each header counted once
		t.Errorf("looks %d", before.Hook.Looks)
	}
	n := newMachine(t, 100)
	m.Tick(at(99))
	n.ok(n.Restore(m.State("boot"), "boot")) // however large: a liar must not cost all others their counters
}

// A label may hold any text, but no megabytes, and nothing that a terminal or Prometheus chokes on.
func TestNamesOfAnyBytesAreSurvived(t *testing.T) {
	m := newMachine(t, 0)
	long := strings.Repeat("é", 1<<16)
	for i, name := range []string{"", "\x00", "\xff\xfe", "a\nb", "\u202eevil", long, Shared, "-c", "../../etc", "(shared) (2)"} {
		gpu, rank := name, -5
		p := m.process(Identity{Folder: name, Job: name, Namespace: name}, recording.Declaration{Producer: recording.ProducerMain, PID: i + 1, Opened: at(1),
			Argv: []string{name}, GPUUUID: &gpu, Rank: &rank})
		p.steps(2, 5, 0.1, 0.1, 0)
		q := m.process(Identity{}, recording.Declaration{Producer: recording.ProducerMain, PID: i + 100, Job: name})
		q.steps(2, 5, 0.1, 0.1, 0)
	}
	m.Tick(at(5))
	kept, err := json.Marshal(m.State("boot"))
	m.ok(err)
	s := m.Snapshot()
	for _, r := range s.Ranks {
		if !utf8.ValidString(r.Tenant.Job) || len(r.Tenant.Job) > recording.MaxName+10 || r.Tenant.Job == "" || r.Tenant.Job == Shared || r.Rank.IsKnown() {
			t.Errorf("%.80q %v", r.Tenant.Job, r.Rank)
		}
	}
	for _, g := range s.GPUs {
		if !utf8.ValidString(g.UUID) || len(g.UUID) > recording.MaxName {
			t.Errorf("GPU %.80q", g.UUID)
		}
	}
	var back State
	m.ok(json.Unmarshal(kept, &back))
	n := newMachine(t, 10)
	m.ok(n.Restore(&back, "boot"))
	if len(n.ranks) != len(m.ranks) {
		t.Errorf("%d ranks after a restart, %d before", len(n.ranks), len(m.ranks))
	}
}

// Whoever writes into another folder and says that it is the same process gets none of its counters and not its name.
func TestAnotherFolderIsAnotherProcess(t *testing.T) {
	m := newMachine(t, 0)
	victim := recording.Declaration{Producer: recording.ProducerMain, PID: 7, StartTicks: 7, Opened: at(1), Job: "victim"}
	p := m.process(Identity{Folder: "f"}, victim)
	p.steps(2, 5, 0.1, 0.1, 0)
	m.Tick(at(5))
	n := newMachine(t, 10)
	n.ok(n.Restore(m.State("boot"), "boot"))
	liar := victim
	liar.Job = "liar"
	n.process(Identity{Folder: "g"}, liar).steps(2, 50, 0.1, 0.1, 0)
	if r := n.rankOf("victim"); r.Running || r.Steps != 5 {
		t.Errorf("%+v", r)
	}
	n.process(Identity{Folder: "f"}, victim)
	if r := n.rankOf("victim"); !r.Running {
		t.Errorf("%+v", r)
	}
}

// Two launchers that live never have one name, whatever came between.
func TestANameIsNotTakenTwice(t *testing.T) {
	m := newMachine(t, 0)
	rank := 0
	start := func(pid, launcher int) *proc {
		return m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: pid, PPID: launcher, Opened: at(1), Job: "j", Rank: &rank})
	}
	a := start(10, 5)
	a.end(2)
	start(11, 6)      // takes the name over
	b := start(12, 5) // the first launcher starts its rank again
	names := map[string]int{}
	for _, r := range m.Snapshot().Ranks {
		names[r.Tenant.Job]++
	}
	if names["j"] != 1 || names["j (2)"] != 1 {
		t.Errorf("%v", names)
	}
	b.end(3)
	start(13, 7)
	if r := m.rankOf("j (2)"); !r.Running {
		t.Errorf("the lowest number that is free is not taken: %+v", m.Snapshot().Ranks)
	}

	n := newMachine(t, 10) // an agent that begins sees the newcomer first
	m.Tick(at(5))
	n.ok(n.Restore(m.State("boot"), "boot"))
	n.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: 20, PPID: 9, Opened: at(9), Job: "j", Rank: &rank})
	n.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: 11, PPID: 6, Opened: at(1), Job: "j", Rank: &rank})
	running := map[Tenant]int{}
	for _, g := range n.groups {
		running[g.tenant] += g.processes
	}
	for tenant, processes := range running {
		if processes > 1 {
			t.Errorf("%d jobs are called %v", processes, tenant)
		}
	}
}

// One user may have thousands of rings whose processes all call their job the same. Nothing may take the square of that, or worse.
func TestThousandsOfOneName(t *testing.T) {
	m := newMachine(t, 0)
	const many = 20000
	procs := make([]*proc, many)
	for i := range procs {
		procs[i] = m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: i + 1, Job: "j"})
	}
	if len(m.jobNames()) != many {
		t.Errorf("%d names", len(m.jobNames()))
	}
	for _, p := range procs {
		p.end(1)
	}
	m.Tick(at(500))
	if len(m.ranks)+len(m.groups)+len(m.living)+len(m.free) != 0 {
		t.Errorf("%d ranks, %d groups, %d names are left", len(m.ranks), len(m.groups), len(m.free))
	}
}

func (m *machine) jobNames() map[Tenant]bool {
	names := map[Tenant]bool{}
	for k := range m.ranks {
		names[k.tenant] = true
	}
	return names
}

// What is kept of processes whose GPU nobody knows is bounded for all of them together.
func TestWhatIsKeptEarlyIsBounded(t *testing.T) {
	m := newMachine(t, 0)
	var procs []*proc
	for i := range 80 {
		p := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerMain, PID: i + 1, Job: "j"})
		p.steps(1, 5000, 0.0001, 0.0001, 0)
		procs = append(procs, p)
	}
	if m.early > mostEarlyOfAll || m.early < mostEarlyOfAll/2 {
		t.Errorf("%d records are kept", m.early)
	}
	for _, p := range procs {
		p.end(2)
	}
	if m.early != 0 {
		t.Errorf("%d records are kept of processes that are gone", m.early)
	}
}

// A loader without persistent workers starts them anew every epoch.
func TestTenThousandShortWorkers(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	for i := range 10000 {
		begin, pid := 2+0.01*float64(i), 1000+i
		m.ok(p.out.Append(recording.Worker{T: at(begin), PID: uint32(pid), Epoch: uint32(i)}.Encode()))
		w := m.process(Identity{Folder: "f"}, recording.Declaration{Producer: recording.ProducerWorker, PID: pid, Parent: 7})
		m.ok(w.out.Append(recording.Batch{Ref: recording.Unknown16, Received: at(begin), Begin: at(begin), End: at(begin + 0.004), Sent: at(begin + 0.005), Batch: 0}.Encode()))
		m.ok(p.out.Append(recording.Fetch{Enter: at(begin), Exit: at(begin + 0.006), Batch: 0, Epoch: uint32(i), CPU: recording.Unknown64}.Encode()))
		w.sink.(recording.Ender).End(w.id)
		if i%100 == 0 {
			m.Tick(at(begin + 0.01))
		}
	}
	m.Tick(at(103))
	r := m.rankOf("train.py")
	if r.Workers.Batches != 10000 || r.Workers.Running != 0 || len(m.streams) != 2 {
		t.Errorf("%+v, %d streams", r.Workers, len(m.streams))
	}
	near(t, "built", r.Workers.Build, 40)
	near(t, "hand-off seen", r.HandOffSeen, 60)
	near(t, "hand-off", r.HandOff, 10)
	for _, s := range m.streams {
		if s.training != nil && len(s.training.claims)+len(s.training.sent)+len(s.training.awaited) > 0 {
			t.Errorf("%d claims, %d batches, %d waits are kept", len(s.training.claims), len(s.training.sent), len(s.training.awaited))
		}
	}
}

// A GPU child that is started again may tell a window twice.
func TestAWindowThatComesAgainIsNotCountedAgain(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	m.train(7, "train.py", "GPU-a", 1)
	m.Tick(at(2))
	for range 3 {
		m.windows(0, 1, 11, 0.5, 0.5, recording.GPUHeldKnown|recording.GPUHeld)
		m.Tick(at(20))
	}
	near(t, "SM seen", uint64(m.tenancyOf("GPU-a", "train.py").Activity.SMSeen*1e9), 10)
}

func TestADamagedStateIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no GPU":               `"tenancies":[{"gpu":""}]`,
		"an account below 0":   `"tenancies":[{"gpu":"g","accounts_ns":{"compute":-1}}]`,
		"more than there was":  `"tenancies":[{"gpu":"g","accounts_ns":{"compute":9000000000,"idle_held":9000000000}}]`,
		"pending below 0":      `"tenancies":[{"gpu":"g","pending_ns":-5}]`,
		"activity below 0":     `"tenancies":[{"gpu":"g","activity":{"SMSeen":-1}}]`,
		"a wait too long":      `"ranks":[{"Wait":18446744073709551615}]`,
		"a bucket of nothing":  `"jobs":[{"StepTimes":{"Count":1,"Buckets":{"1000000000":1}}}]`,
		"buckets that miss":    `"jobs":[{"StepTimes":{"Count":7,"Buckets":{"1":1}}}]`,
		"a sum below 0":        `"jobs":[{"StepTimes":{"Count":1,"Sum":-5,"Buckets":{"1":1}}}]`,
		"throttled for longer": `"jobs":[{"ThrottledTime":18446744073709551615}]`,
	} {
		var s State
		if err := json.Unmarshal([]byte(`{"schema":"`+StateSchema+`","boot_id":"boot","at":10000000000,`+text+`}`), &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := newMachine(t, 20)
		if err := n.Restore(&s, "boot"); err == nil {
			t.Errorf("%s: taken", name)
		}
		if x := n.Snapshot(); len(x.Tenancies)+len(x.Ranks)+len(x.Jobs) > 0 {
			t.Errorf("%s: half of it was taken", name)
		}
	}
}

// exercise lets time pass, and looks at everything.
func exercise(t *testing.T, n *Node) {
	for _, now := range []float64{21, 22, 40, 3000} {
		n.Tick(at(now))
		s := n.Snapshot()
		for _, x := range s.Tenancies {
			if sum(x.Books) != x.Books.Allocated {
				t.Errorf("%+v", x.Books)
			}
		}
		kept, err := json.Marshal(n.State("boot"))
		if err != nil {
			t.Fatal(err)
		}
		var back State
		if err := json.Unmarshal(kept, &back); err != nil {
			t.Fatal(err)
		}
		if err := New(Options{Begin: at(3001)}).Restore(&back, "boot"); err != nil {
			t.Fatalf("its own state is refused: %v\n%s", err, kept)
		}
	}
}

func FuzzState(f *testing.F) {
	m := &machine{Node: New(Options{Begin: at(1), Lag: second}), t: &testing.T{}}
	m.Tick(at(5))
	kept, _ := json.Marshal(m.State("boot"))
	f.Add(kept)
	f.Add([]byte(`{"schema":"` + StateSchema + `","boot_id":"boot","at":1000000000,"tenancies":[{"gpu":"g","running":true,"accounts_ns":{"compute":5}}],` +
		`"ranks":[{"Tenant":{"Job":"j"},"Rank":1,"Steps":3}],"jobs":[{"Tenant":{"Job":"j"},"StepTimes":{"Count":1,"Sum":1,"Buckets":{"0":1}}}],` +
		`"processes":[{"folder":"f","pid":7,"start_ticks":7,"opened":5,"tenant":{"Job":"j"},"seq":9}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s State
		if json.Unmarshal(text, &s) != nil {
			return
		}
		n := New(Options{Begin: at(20), Lag: second})
		_ = n.Restore(&s, "boot")
		gpu := "g"
		sink := n.Spool(Identity{Folder: "f"})
		id, _ := sink.Declare(recording.Declaration{Producer: recording.ProducerMain, PID: 7, StartTicks: 7, Opened: 5, Job: "j", GPUUUID: &gpu})
		_ = sink.Records(id, []recording.Record{recording.Step{End: at(20)}.Encode()})
		exercise(t, n)
	})
}

// Lines of what is fuzzed begin with d (a declaration), n (a note), r (records), h (a header), e (the end of a stream).
func FuzzNode(f *testing.F) {
	f.Add([]byte("d{\"producer\":\"main\",\"pid\":7,\"opened\":1,\"gpu_uuid\":\"GPU-a\",\"argv\":[\"x.py\"]}\nr0000000000000000000000000000000000000000000000000000000000000000\n" +
		"n{\"note\":\"ended\",\"t\":5}\nd{\"producer\":\"worker\",\"pid\":8,\"parent\":7}\ne\n"))
	for _, r := range []recording.Record{recording.Fetch{Exit: at(5), Batch: 1}.Encode(), recording.GPU{Begin: at(1), End: at(9), SM: 0.5}.Encode(), recording.Batch{End: at(3), Sent: at(4)}.Encode()} {
		r.SetSeq(1)
		f.Add(fmt.Appendf(nil, "d{\"producer\":\"agent\"}\nn{\"note\":\"gpu\",\"gpu\":0,\"uuid\":\"GPU-a\"}\nn{\"note\":\"allocation\",\"uuid\":\"GPU-a\",\"by\":\"kubernetes\",\"holders\":[{\"pod\":\"p\"}]}\nr%s\n", r[:]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := New(Options{Begin: at(1), Lag: second, Forget: 100 * second})
		trusted, id := false, recording.StreamID(0)
		for line := range bytes.Lines(text) {
			trusted = !trusted
			sink := n.Agent()
			if !trusted {
				sink = n.Spool(Identity{Folder: "f"})
			}
			switch rest := line[1:]; line[0] {
			case 'd':
				var d recording.Declaration
				_ = json.Unmarshal(rest, &d)
				id, _ = sink.Declare(d)
			case 'n':
				_ = sink.Note(id, json.RawMessage(rest))
			case 'r':
				var r recording.Record
				copy(r[:], rest)
				_ = sink.Records(id, []recording.Record{r})
			case 'h':
				h, _ := recording.ParseRingHeader(rest)
				n.See(id, h)
			case 'e':
				sink.(recording.Ender).End(id)
			case 't':
				n.Tick(n.now + second)
			}
		}
		exercise(t, n)
	})
}

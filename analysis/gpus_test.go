package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// blankWindow is a GPU window in which nothing was read, for a test to fill in.
func blankWindow(ref uint16, begin, end float64) recording.GPU {
	return recording.GPU{Ref: ref, Begin: at(begin), End: at(end), SM: nan, Resident: nan, Tensor: nan, DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan}
}

var nan = float32(math.NaN())

// stateOf is a state of a GPU that nobody told anything of.
func stateOf(ref uint16, begin, end float64) recording.GPUState {
	return recording.GPUState{Ref: ref, Begin: at(begin), End: at(end), Power: nan, PowerLimit: nan, SMClock: nan, SMClockMax: nan, MemoryUsed: nan, MemoryAll: nan,
		Resident: nan, Reasons: recording.Unknown32, Link: recording.Unknown32}
}

// agent declares an agent that watches GPUs.
func (x *tape) agent(gpus ...recording.GPUNote) recording.StreamID {
	id, err := x.Declare(recording.Declaration{Producer: recording.ProducerAgent, Host: "node0"})
	if err != nil {
		x.t.Fatal(err)
	}
	for i, g := range gpus {
		g.GPU = uint16(i)
		x.AddNote(id, g)
	}
	return id
}

// on declares a training process that says which GPU it uses.
func (x *tape) on(pid, number int, uuid string) recording.StreamID {
	id, err := x.Declare(recording.Declaration{Producer: recording.ProducerMain, Host: "node0", PID: pid, Rank: &number, LocalRank: &number, GPUUUID: &uuid})
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

// train writes steps of so many ms until a time, of which the first part waits for data.
func (x *tape) train(id recording.StreamID, until, step, wait float64) {
	for b := 0; float64(b+1)*step <= until; b++ {
		now := float64(b) * step
		x.fetch(id, 0, first(b), uint32(b), now, now+wait)
		x.step(id, now+step)
	}
}

// look writes what a look at the processes of a GPU found; 0 = none.
func (x *tape) look(agent recording.StreamID, before, now float64, pids ...uint32) {
	for _, pid := range pids {
		x.write(agent, recording.GPUProcess{Begin: at(before), End: at(now), PID: pid, Memory: recording.Unknown64}.Encode())
	}
}

// observe gives the recording a begin and an end, ms.
func (x *tape) observe(end float64) {
	x.SetManifest(recording.Manifest{Format: recording.Format, Host: "node0", StartedMonotonic: start, EndedMonotonic: unit.Some(at(end)),
		Hook: recording.HookSummary{Attached: true, Spools: 1}})
}

func rung(t *testing.T, all []Rung, name string) Rung {
	t.Helper()
	i := slices.IndexFunc(all, func(r Rung) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no rung %s in %+v", name, all)
	}
	return all[i]
}

func is(t *testing.T, what string, got Ratio, want float64) {
	t.Helper()
	if v, ok := got.Get(); !ok || !near(v, want, 1e-6*math.Max(1, math.Abs(want))) {
		t.Errorf("%s is %v %q, want %v", what, v, got.Why(), want)
	}
}

func unknown(t *testing.T, what string, got Ratio, why string) {
	t.Helper()
	if v, ok := got.Get(); ok || !strings.Contains(got.Why(), why) {
		t.Errorf("%s is %v %q, want it unknown because %q", what, v, got.Why(), why)
	}
}

// Who holds a GPU is known between two looks that agree; between two that do not, it is not.
func TestHeldIsKnownBetweenLooksThatAgree(t *testing.T) {
	x := newTape(t)
	x.observe(50_000)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a", Source: "nvml", Grade: "C"})
	x.look(agent, 0, 0, 0)
	x.look(agent, 0, 10_000, 0)         // free until here
	x.look(agent, 10_000, 20_000, 7, 8) // somebody came
	x.look(agent, 20_000, 30_000, 7)    // held
	x.look(agent, 35_000, 45_000, 7)    // a look in between was lost
	r := x.run()
	g := r.GPUs[0]
	is(t, "held", g.HeldRatio, 0.5)
	held := rung(t, g.Ladder, rungHeld)
	is(t, "coverage", held.Coverage, 20.0/50)
	unknown(t, "hours held", held.GPUHours, "40 %")
	if held.Grade.Or("") != stat.GradeC || g.Processes.Or(0) != 2 {
		t.Errorf("grade %v, %d processes", held.Grade, g.Processes.Or(0))
	}
}

// A rank that initialised CUDA on its GPU holds it until it ends, whether or not a list of processes shows it.
func TestARankHoldsItsGPUOnceCUDAIsInitialised(t *testing.T) {
	x := newTape(t)
	x.observe(10_000)
	x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "B"})
	id := x.on(7, 0, "GPU-a")
	x.write(id, recording.Mark{Ref: uint16(recording.MarkCUDA), Begin: at(2000), End: at(2000)}.Encode())
	x.train(id, 8000, 100, 50)
	r := x.run()
	is(t, "held", r.GPUs[0].HeldRatio, 1)
	is(t, "coverage", rung(t, r.GPUs[0].Ladder, rungHeld).Coverage, 0.6)
}

// Who finds processes with a context says so when that changes: in between they hold the GPU.
func TestProcessesThatAreFoundHoldAGPU(t *testing.T) {
	x := newTape(t)
	x.observe(50_000)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a"})
	some := []recording.Holder{{Job: "python (pid 9)", PIDs: []int{9}}}
	for _, n := range []recording.AllocationNote{
		{T: at(10_000), Since: at(0), Holders: some}, {T: at(30_000), Since: at(25_000), Holders: nil}, {T: at(40_000), Since: at(30_000), Holders: some},
	} {
		n.UUID, n.By = "GPU-a", recording.AllocatedByProcesses
		x.AddNote(agent, n)
	}
	x.write(agent, recording.GPUEvent{T: at(1), Code: recording.GPUEventRestated}.Encode())
	g := x.run().GPUs[0]
	is(t, "held", g.HeldRatio, 1)
	is(t, "coverage", rung(t, g.Ladder, rungHeld).Coverage, 25.0/50)
	if g.AssignedBy.Or("") != "processes" || g.Shared.IsKnown() {
		t.Errorf("assigned by %v, shared %v: processes tell who has a context, not to whom it was given", g.AssignedBy, g.Shared)
	}
}

// Who runs kernels holds the GPU, also between them; a minute in which nothing ran and nobody looked is not known, and one in which nobody
// was found is not bridged.
func TestKernelsShowThatAGPUIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		pause  float64
		found  int // processes that a look in the pause found; below 0 = nobody looked
		covers float64
	}{"ten seconds": {10_000, -1, 1}, "a minute": {60_000, -1, 0.5}, "ten seconds, nobody found": {10_000, 0, 0.5}, "a minute, looked at": {30_000, 1, 1}} {
		x := newTape(t)
		half := c.pause / 2
		x.observe(2 * c.pause)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "A"})
		for now := 0.0; now < 2*c.pause; now += 500 {
			w := blankWindow(0, now, now+500)
			w.SM, w.Resident = 0, 0
			if now < half || now >= half+c.pause {
				w.SM, w.Resident = 0.5, 0.6
			}
			x.write(agent, w.Encode())
		}
		if c.found >= 0 {
			x.look(agent, c.pause, c.pause, []uint32{0, 7}[c.found])
		}
		g := x.run().GPUs[0]
		is(t, name+": held", g.HeldRatio, 1)
		r := rung(t, g.Ladder, rungHeld)
		if r.Source == "" || !near(r.Coverage.Or(0), c.covers, 0.01) {
			t.Errorf("%s: covers %v, %+v", name, r.Coverage.Or(0), r)
		}
	}
}

// M6: kernels all the time, 10 GB used, nobody listed: who holds it is unknown, it is not free.
func TestAGPUInUseByNobodyIsNotFree(t *testing.T) {
	for name, c := range map[string]struct {
		resident float32
		memory   float32
		free     bool
	}{"kernels": {1, 1e8, false}, "memory": {0, 10e9, false}, "neither": {0, 5e8, true}} {
		x := newTape(t)
		x.observe(20_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "C"})
		for s := range 20 {
			v := stateOf(0, float64(s)*1000+1, float64(s+1)*1000)
			v.Resident, v.MemoryUsed = c.resident, c.memory
			x.write(agent, v.Encode())
		}
		x.look(agent, 0, 1, 0)
		x.look(agent, 1, 20_000, 0)
		g := x.run().GPUs[0]
		if !c.free {
			unknown(t, name, g.HeldRatio, "something uses it")
		} else if v, ok := g.HeldRatio.Get(); !ok || v != 0 {
			t.Errorf("%s: held %v %q, want 0", name, v, g.HeldRatio.Why())
		}
	}
}

// A list of processes that was empty while kernels ran shows nobody, as in a container: it makes no GPU free at other times either.
func TestAListThatHidesProcessesFreesNoGPU(t *testing.T) {
	x := newTape(t)
	x.observe(40_000)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "A"})
	for now := 0.0; now < 40_000; now += 1000 {
		w := blankWindow(0, now, now+1000)
		w.SM, w.Resident = 0, 0
		if now < 10_000 {
			w.SM, w.Resident = 0.5, 0.5
		}
		x.write(agent, w.Encode())
	}
	for now := 1.0; now < 40_000; now += 10_000 {
		x.look(agent, max(1, now-10_000), now, 0)
	}
	unknown(t, "held", x.run().GPUs[0].HeldRatio, "something uses it")
}

// The ladder in share, hours and money: 0.5 h of a GPU at 4 an hour, SM activity 0.3.
func TestLadderInHoursAndMoney(t *testing.T) {
	const hour = 1_800_000
	x := newTape(t)
	x.observe(hour)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a", Source: "dcgm", Grade: "A"})
	for s := 0; s < hour; s += 10_000 {
		w := blankWindow(0, float64(s), float64(s+10_000))
		w.SM, w.Resident, w.Flags = 0.3, 0.8, recording.GPUHeld|recording.GPUHeldKnown
		if s < hour*3/4 { // tensor activity is known for three quarters
			w.Tensor = 0.1
		}
		x.write(agent, w.Encode())
	}
	x.train(x.on(7, 0, "GPU-a"), hour, 5000, 2500)
	r, err := Run([]recording.Reader{x}, Options{HourCost: 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		ratio, hours, coverage float64
		grade                  stat.Grade
	}{
		rungAllocated: {1, 0.5, 1, "A"}, rungHeld: {1, 0.5, 1, "A"}, rungResident: {0.8, 0.4, 1, "B"}, rungSM: {0.3, 0.15, 1, "A"}, rungTensor: {0.1, 0.05, 0.75, "B"},
	} {
		for where, ladder := range map[string][]Rung{"the GPU": r.GPUs[0].Ladder, "the job": r.Ladder} {
			got := rung(t, ladder, name)
			is(t, where+", "+name, got.Ratio, float64(float32(want.ratio)))
			is(t, where+", hours "+name, got.GPUHours, 0.5*float64(float32(want.ratio)))
			is(t, where+", cost "+name, got.Cost, 2*float64(float32(want.ratio)))
			is(t, where+", coverage "+name, got.Coverage, want.coverage)
			if got.Grade.Or("") != want.grade {
				t.Errorf("%s, %s: grade %v, want %s", where, name, got.Grade, want.grade)
			}
		}
	}
	r = x.run()
	unknown(t, "cost", r.Ladder[0].Cost, "--gpu-hour-cost")
	unknown(t, "price", r.HourCost, "--gpu-hour-cost")
}

// M5 and telemetry rules: one GPU that three pods share is one GPU, whose counters are claimed for none of them.
func TestASharedGPUIsOneGPU(t *testing.T) {
	x := newTape(t)
	x.observe(3_600_000)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a", Source: "scrape", Grade: "B"})
	x.AddNote(agent, recording.AllocationNote{T: start, UUID: "GPU-a", By: recording.AllocatedByKubernetes, Shared: "time-slicing",
		Holders: []recording.Holder{{Namespace: "a", Pod: "one"}, {Namespace: "a", Pod: "two"}, {Namespace: "b", Pod: "one"}}})
	for s := range 360 {
		w := blankWindow(0, float64(s)*10_000, float64(s+1)*10_000)
		w.SM, w.Resident = 0.714, 0.9
		x.write(agent, w.Encode())
	}
	x.train(x.on(7, 0, "GPU-a"), 3_600_000, 5000, 1)
	r, err := Run([]recording.Reader{x}, Options{HourCost: 10})
	if err != nil {
		t.Fatal(err)
	}
	g := r.GPUs[0]
	if len(r.GPUs) != 1 || g.Shared.Or("") != "time-slicing" || len(g.Holders) != 4 || g.AssignedBy.Or("") != "kubernetes" {
		t.Errorf("%d GPUs, shared %v, holders %q", len(r.GPUs), g.Shared, g.Holders)
	}
	is(t, "hours", rung(t, r.Ladder, rungAllocated).GPUHours, 1)
	is(t, "SM activity", rung(t, r.Ladder, rungSM).Ratio, float64(float32(0.714)))
	unknown(t, "cost", rung(t, r.Ladder, rungAllocated).Cost, "shared")
	if g.SMActiveComputing.IsKnown() || g.SMActiveWaiting.IsKnown() {
		t.Error("SM activity of all pods is taken apart by the waits of one of them")
	}
	for _, account := range []string{"compute", "host", "copy"} {
		if ns, booked := g.AccountsNS[account]; booked {
			t.Errorf("kernels of all pods are this job's: %d ns of %s", ns, account)
		}
	}
	for _, p := range r.Step.Anatomy {
		if p.Name != "data_wait" && p.Name != "unexplained" {
			t.Errorf("kernels of all pods are a part of this job's step: %+v", p)
		}
	}
}

// Several holders count when they have the GPU for a part of the run that counts.
func TestAMonitorThatLooksInSharesNothing(t *testing.T) {
	for until, shared := range map[float64]bool{4_000: false, 6_000: true, 1e9: true} {
		x := newTape(t)
		x.observe(100_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a"})
		one, two := recording.Holder{Job: "1"}, recording.Holder{Job: "2"}
		x.AddNote(agent, recording.AllocationNote{T: at(0), UUID: "GPU-a", By: recording.AllocatedByProcesses, Holders: []recording.Holder{one, two}})
		x.AddNote(agent, recording.AllocationNote{T: at(1), UUID: "GPU-a", By: recording.AllocatedBySlurm, Holders: []recording.Holder{one}})
		if until < 1e9 {
			x.AddNote(agent, recording.AllocationNote{T: at(until), UUID: "GPU-a", By: recording.AllocatedByProcesses, Holders: []recording.Holder{one}})
		}
		x.write(agent, recording.GPUEvent{T: at(1), Code: recording.GPUEventRestated}.Encode())
		if got := x.run().GPUs[0].Shared.Or(""); (got == "several holders") != shared || !shared && got != "no" {
			t.Errorf("for %v ms: %q", until, got)
		}
	}
}

// M2 (F74): GPU-util of a MIG slice is absent or 0; its own engine counter counts. The GPU it is cut from is no device beside it,
// and a slice has no known price.
func TestASliceIsKnownByItsEngine(t *testing.T) {
	for _, util := range []float32{0, nan} {
		x := newTape(t)
		x.observe(100_000)
		slice := recording.GPUNote{UUID: "MIG-1", Parent: "GPU-a", GI: unit.Some(int64(3)), CI: unit.Some(int64(0)), Source: "dcgm", Grade: "A"}
		agent := x.agent(slice, recording.GPUNote{UUID: "GPU-a", Source: "nvml", Grade: "C"})
		for s := range 100 {
			w := blankWindow(0, float64(s)*1000, float64(s+1)*1000)
			w.SM, w.Resident = 0.4, util
			x.write(agent, w.Encode())
			x.write(agent, recording.GPUPipes{Begin: w.Begin, End: w.End, Engine: 0.6, Occupancy: 0.25, FP32: 0.2, PCIeIn: 1e9, PCIeOut: 2e9, NVLinkIn: 3e9, NVLinkOut: 9.2e18}.Encode())
			whole := stateOf(1, float64(s)*1000+1, float64(s+1)*1000)
			whole.Resident = 0
			x.write(agent, whole.Encode())
		}
		x.train(x.on(7, 0, "MIG-1"), 100_000, 500, 1)
		r, err := Run([]recording.Reader{x}, Options{HourCost: 2})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.GPUs) != 1 {
			t.Fatalf("%d devices", len(r.GPUs))
		}
		g := r.GPUs[0]
		is(t, "resident", g.ResidentRatio, float64(float32(0.6)))
		if source := rung(t, g.Ladder, rungResident).Source; source != "dcgm, graphics engine" {
			t.Errorf("whose residency it is: %q", source)
		}
		for name, c := range map[string]struct {
			got  Ratio
			want float64
		}{"FP32": {g.Pipes.FP32, float64(float32(0.2))}, "occupancy": {g.Pipes.Occupancy, 0.25}, "PCIe in": {g.Pipes.PCIeIn, 1e9}, "PCIe out": {g.Pipes.PCIeOut, 2e9}, "NVLink in": {g.Pipes.NVLinkIn, 3e9}} {
			is(t, name, c.got, c.want)
		}
		unknown(t, "a blank that leaked", g.Pipes.NVLinkOut, "no source")
		if g.Parent.Or("") != "GPU-a" || g.GI.Or(-1) != 3 || g.CI.Or(-1) != 0 || g.Untrusted.Or(1) != 0 || has(r, "idle-allocated") || has(r, "metric-untrusted") {
			t.Errorf("%+v, %+v", g, r.Verdicts)
		}
		unknown(t, "cost of a slice", g.Ladder[0].Cost, "part of a GPU")
	}
}

// On a machine that others use too, GPUs without a rank are the job's only if they are assigned to it.
func TestGPUsOfOthersAreLeftOut(t *testing.T) {
	holder := func(job string) []recording.Holder { return []recording.Holder{{Job: job}} }
	for name, c := range map[string]struct {
		notes []recording.AllocationNote
		rank  string
		want  []string
	}{
		"nothing told":             {nil, "GPU-b", []string{"GPU-b"}},
		"no rank found on any":     {nil, "", []string{"GPU-a", "GPU-b", "GPU-c"}},
		"assigned to the same":     {[]recording.AllocationNote{{UUID: "GPU-a", By: "slurm", Holders: holder("9")}, {UUID: "GPU-b", By: "slurm", Holders: holder("9")}, {UUID: "GPU-c", By: "slurm", Holders: holder("8")}}, "GPU-b", []string{"GPU-a", "GPU-b"}},
		"processes promise nobody": {[]recording.AllocationNote{{UUID: "GPU-a", By: "processes", Holders: holder("9")}, {UUID: "GPU-b", By: "processes", Holders: holder("9")}}, "GPU-b", []string{"GPU-b"}},
	} {
		x := newTape(t)
		x.observe(10_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a"}, recording.GPUNote{UUID: "GPU-b"}, recording.GPUNote{UUID: "GPU-c"})
		for _, n := range c.notes {
			n.T = start
			x.AddNote(agent, n)
		}
		if c.rank != "" {
			x.train(x.on(7, 0, c.rank), 10_000, 100, 1)
		}
		r := x.run()
		var got []string
		for _, g := range r.GPUs {
			got = append(got, g.UUID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		left := slices.ContainsFunc(r.Quality.Warnings, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("%d GPUs beside", 3-len(c.want))) })
		if left != (len(c.want) < 3) {
			t.Errorf("%s: warnings %q", name, r.Quality.Warnings)
		}
	}
}

// What follows from a guess is one: a GPU that is assigned to the holder of another, on which a rank is only thought to be.
func TestAGPUOfTheHolderOfAGuessedOneIsAGuess(t *testing.T) {
	for says, want := range map[string]string{"GPU-a": "A", "": "C"} {
		x := newTape(t)
		x.observe(10_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "A"}, recording.GPUNote{UUID: "GPU-b", Grade: "A"})
		for _, uuid := range []string{"GPU-a", "GPU-b"} {
			x.AddNote(agent, recording.AllocationNote{T: start, UUID: uuid, By: recording.AllocatedBySlurm, Holders: []recording.Holder{{Job: "9"}}})
		}
		x.train(x.on(7, 0, says), 10_000, 100, 1)
		r := x.run()
		if len(r.GPUs) != 2 || string(r.GPUs[1].Grade) != want {
			t.Errorf("a rank that says %q: %+v", says, r.GPUs)
		}
	}
}

// Counters that turn the ladder over are shown as what they are, of the lowest grade: SM activity without kernels, matrix units without SMs.
func TestALadderThatIsTurnedOverIsOfTheLowestGrade(t *testing.T) {
	for name, c := range map[string]struct {
		sm, resident, tensor float32
		grades               string // resident, SM, tensor
		inverted             int
	}{
		"as it should be":        {0.5, 0.6, 0.4, "BAA", 0},
		"within what is unsure":  {0.5, 0.46, 0.4, "BAA", 0},
		"SMs without kernels":    {0.5, 0.1, 0.4, "CCA", 1},
		"matrix units alone":     {0.2, 0.6, 0.5, "BCC", 1},
		"over what is not known": {0.2, nan, 0.5, "-CC", 1},
	} {
		x := newTape(t)
		x.observe(10_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Source: "dcgm", Grade: "A"})
		for i := range 100 {
			w := blankWindow(0, float64(100*i), float64(100*i+100))
			w.SM, w.Resident, w.Tensor = c.sm, c.resident, c.tensor
			x.write(agent, w.Encode())
		}
		g := x.run().GPUs[0]
		ladder := g.Ladder
		if sm, ok := g.SMActiveRatio.Get(); !ok || string(sm.Grade) != c.grades[1:2] {
			t.Errorf("%s: SM activity %+v", name, sm)
		}
		grades := ""
		for _, r := range ladder[2:] {
			grades += string(r.Grade.Or("-"))
		}
		if grades != c.grades || len(Inverted(ladder)) != c.inverted {
			t.Errorf("%s: grades %s, want %s; %+v", name, grades, c.grades, Inverted(ladder))
		}
	}
}

// A rank in a container is called 7 there and something else outside; who looks from outside tells both.
func TestAGPUIsARanksThatWasSeenOnItFromOutsideItsContainer(t *testing.T) {
	for space, want := range map[uint64][]string{4026532999: {"GPU-a", "GPU-b"}, 4026533000: {"GPU-a"}, 0: {"GPU-a"}} {
		x := newTape(t)
		x.observe(10_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a"}, recording.GPUNote{UUID: "GPU-b"})
		x.AddNote(agent, recording.AllocationNote{T: start, UUID: "GPU-b", By: recording.AllocatedByProcesses,
			Holders: []recording.Holder{{PIDs: []int{4711}, Inside: []recording.PIDInside{{PID: 7, Namespace: 4026532999}}}}})
		number, uuid := 0, "GPU-a"
		id, err := x.Declare(recording.Declaration{Producer: recording.ProducerMain, Host: "node0", PID: 7, Namespace: space, Rank: &number, LocalRank: &number, GPUUUID: &uuid})
		if err != nil {
			t.Fatal(err)
		}
		x.train(id, 10_000, 100, 1)
		var got []string
		for _, g := range x.run().GPUs {
			got = append(got, g.UUID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("namespace %d: %v, want %v", space, got, want)
		}
	}
}

// Where nothing counts SM activity, what the driver tells of kernels is a rung of grade C, and SM activity is unknown.
func TestWithoutCountersTheDriverTellsOfKernels(t *testing.T) {
	x := newTape(t)
	x.observe(60_000)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a", Source: "dcgm", Grade: "C", Why: "NVML tells whether a kernel is resident"})
	for s := range 60 {
		v := stateOf(0, float64(s)*1000+1, float64(s+1)*1000)
		v.Resident, v.Power = 0.75, 200
		x.write(agent, v.Encode())
	}
	x.train(x.on(7, 0, "GPU-a"), 60_000, 100, 10)
	g := x.run().GPUs[0]
	if r := rung(t, g.Ladder, rungResident); r.Grade.Or("") != stat.GradeC || !near(r.Ratio.Or(0), 0.75, 1e-6) || r.Source != "the driver's GPU-util" {
		t.Errorf("resident %+v", r)
	}
	unknown(t, "SM activity", rung(t, g.Ladder, rungSM).Ratio, "NVML tells")
	is(t, "power", g.State.Power, 200)
	if compute := g.AccountsNS["compute"]; !near(float64(compute)/60e9, 0.75, 0.02) {
		t.Errorf("computed %v of the time", float64(compute)/60e9)
	}
}

// What holds the clock down counts while the GPU works: an idle one lowers its clock and its link by itself (F80, F81).
func TestStatesOfAnIdleGPUSayNothingOfTheJob(t *testing.T) {
	x := newTape(t)
	x.observe(40_000)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a"})
	idle, work := recording.Link{Generation: 1, Width: 16, MaxGeneration: 4, MaxWidth: 16}, recording.Link{Generation: 4, Width: 8, MaxGeneration: 4, MaxWidth: 16}
	for s := range 40 {
		v := stateOf(0, float64(s)*1000+1, float64(s+1)*1000)
		v.Resident, v.Reasons, v.Link, v.SMClock, v.SMClockMax, v.Power, v.PowerLimit = 0, 1, idle.Pack(), 210e6, 1410e6, 50, 400
		if s >= 20 {
			v.Resident, v.Reasons, v.Link, v.SMClock, v.Power = 0.9, 0, work.Pack(), 1410e6, 300
		}
		if s >= 30 {
			v.Reasons, v.SMClock = 32, 1000e6
		}
		x.write(agent, v.Encode())
	}
	x.write(agent, recording.GPUEvent{T: at(12_000), Code: recording.GPUEventXid, Value: 31}.Encode())
	x.write(agent, recording.GPUEvent{T: at(13_000), Code: recording.GPUEventXid, Value: 31}.Encode())
	x.write(agent, recording.GPUEvent{T: at(14_000), Code: recording.GPUEventGone, Value: recording.Unknown64}.Encode())
	g := x.run().GPUs[0]
	is(t, "thermal", g.State.Thermal, 0.5)
	is(t, "hardware", g.State.Hardware, 0)
	is(t, "clock", g.State.Clock, 1205e6)
	is(t, "power of limit", g.State.WorkPower, 0.75)
	if g.State.LinkGen.Or(0) != 4 || g.State.LinkWidth.Or(0) != 8 || g.State.LinkWidthMost.Or(0) != 16 {
		t.Errorf("link %+v", g.State)
	}
	if len(g.Events) != 2 || g.Events[0].Xid.Or(0) != 31 || g.Events[0].Count != 2 || !near(g.Events[0].Seconds, 12, 1e-9) || g.Events[1].Name != "lost" {
		t.Errorf("events %+v", g.Events)
	}
}

// Further counters that cannot be make their window untrusted as well.
func TestAPipeAboveOneIsNotBelieved(t *testing.T) {
	for name, change := range map[string]func(*recording.GPUPipes){
		"occupancy": func(p *recording.GPUPipes) { p.Occupancy = 1.4 }, "engine": func(p *recording.GPUPipes) { p.Engine = 4294967295 }, "FP32": func(p *recording.GPUPipes) { p.FP32 = 1.3 },
	} {
		x := newTape(t)
		x.observe(10_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "A"})
		for now := 0.0; now < 10_000; now += 1000 {
			w := blankWindow(0, now, now+1000)
			w.SM, w.Resident = 0.5, 1
			p := recording.GPUPipes{Begin: w.Begin, End: w.End, Engine: 1, Occupancy: 0.5, FP32: 0.5, PCIeIn: nan, PCIeOut: nan, NVLinkIn: nan, NVLinkOut: nan}
			change(&p)
			x.write(agent, w.Encode())
			x.write(agent, p.Encode())
		}
		if g := x.run().GPUs[0]; g.Untrusted.Or(0) != 1 || g.SMActiveRatio.IsKnown() || g.Pipes.Occupancy.IsKnown() && name != "FP32" {
			t.Errorf("%s: untrusted %v, SM activity %v, %+v", name, g.Untrusted.Or(-1), g.SMActiveRatio, g.Pipes)
		}
	}
}

// A source whose counters all read 0, that of the engine too, contradicts nothing by itself: the driver is the second witness.
func TestCountersThatAllReadNothingAreHeldAgainstTheDriver(t *testing.T) {
	for resident, untrusted := range map[float32]float64{1: 1, 0: 0} {
		x := newTape(t)
		x.observe(10_000)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Source: "nvml-gpm", Grade: "A"})
		for i := range 100 {
			w := blankWindow(0, float64(100*i), float64(100*i+100))
			w.SM, w.Tensor = 0, 0
			x.write(agent, w.Encode())
			x.write(agent, recording.GPUPipes{Begin: w.Begin, End: w.End, Engine: 0, Occupancy: nan, FP32: nan, PCIeIn: nan, PCIeOut: nan, NVLinkIn: nan, NVLinkOut: nan}.Encode())
		}
		for i := range 10 {
			s := stateOf(0, float64(1000*i), float64(1000*i+1000))
			s.Resident = resident
			x.write(agent, s.Encode())
		}
		g := x.run().GPUs[0]
		is(t, "the untrusted share", g.Untrusted, untrusted)
		if sm := rung(t, g.Ladder, rungSM).Ratio; untrusted == 1 {
			unknown(t, "SM activity", sm, "contradict")
		} else {
			is(t, "SM activity", sm, 0)
		}
	}
}

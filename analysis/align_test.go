package analysis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// TestWhichGPU: ranks find their GPU by UUID, else as the only one, else in order, and the grade says how.
func TestWhichGPU(t *testing.T) {
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	type process struct {
		declared, noted *string
		local           *int
	}
	tests := []struct {
		name  string
		gpus  []string
		ranks []process
		want  []string // UUID and the grade of its row, by rank; "" is none
	}{
		{"by UUID, crosswise, prefix or not", []string{"GPU-a", "GPU-b"}, []process{{declared: text("GPU-b")}, {declared: text("A")}}, []string{"GPU-b A", "GPU-a A"}},
		{"by what it said later", []string{"GPU-a", "GPU-b"}, []process{{noted: text("GPU-b")}, {noted: text("GPU-a")}}, []string{"GPU-b A", "GPU-a A"}},
		{"the only one", []string{"GPU-a"}, []process{{}}, []string{"GPU-a A"}},
		{"by local rank", []string{"GPU-a", "GPU-b"}, []process{{local: number(1)}, {local: number(0)}}, []string{"GPU-b C", "GPU-a C"}},
		{"by rank", []string{"GPU-a", "GPU-b"}, []process{{}, {}}, []string{"GPU-a C", "GPU-b C"}},
		{"one GPU that two ranks do not name", []string{"GPU-a"}, []process{{}, {}}, []string{"", ""}},
		{"shared", []string{"GPU-a"}, []process{{declared: text("GPU-a")}, {declared: text("GPU-a")}}, []string{"GPU-a A", "GPU-a A"}},
		{"none", nil, []process{{local: number(0)}}, []string{""}},
	}
	for _, test := range tests {
		x := newTape(t)
		agent, _ := x.Declare(recording.Declaration{Producer: recording.ProducerAgent})
		for i, uuid := range test.gpus {
			x.AddNote(agent, recording.GPUNote{GPU: uint16(i), UUID: uuid, Grade: "A"})
			x.write(agent, recording.GPU{Ref: uint16(i), Begin: at(0), End: at(900), SM: 0.5, Resident: 0.5}.Encode())
		}
		for i, p := range test.ranks {
			rank := i
			id, _ := x.Declare(recording.Declaration{Producer: recording.ProducerMain, PID: 10 + i, Rank: &rank, LocalRank: p.local, GPUUUID: p.declared})
			if p.noted != nil {
				x.AddNote(id, recording.DeviceNote{GPUUUID: unit.Some(*p.noted)})
			}
			for b := range 40 {
				x.fetch(id, 0, first(b), uint32(b), float64(20*b), float64(20*b+5))
				x.step(id, float64(20*b+20))
			}
		}
		r := x.run()
		for i, want := range test.want {
			got := ""
			for _, g := range r.GPUs {
				for _, holder := range g.Holders {
					if strings.HasPrefix(holder, fmt.Sprintf("rank %d (pid %d", i, 10+i)) {
						got = g.UUID + " " + string(g.Grade)
						if guess := strings.HasSuffix(holder, "a guess)"); guess != (g.Grade == "C") || guess != r.Ranks[i].GPUGuessed {
							t.Errorf("%s: %q of grade %s, guessed %v", test.name, holder, g.Grade, r.Ranks[i].GPUGuessed)
						}
					}
				}
			}
			if got != want {
				t.Errorf("%s: rank %d is on %q, want %q", test.name, i, got, want)
			}
		}
	}
}

// A rank that does not say which GPU it uses is on the one where the driver lists it, and on none that others alone hold. One that says so
// is on no other, watched or not; CUDA may name the GPU of a slice.
func TestWhichGPUByWhatElseIsKnown(t *testing.T) {
	const child = 99 // of the job
	for name, c := range map[string]struct {
		parent string // of the first GPU
		says   string // the rank
		lists  [2][]uint32
		at     float64 // ms, of the look
		inside bool    // the rank is in a container
		want   string
		gpus   int  // that are the job's
		alone  bool // there is no second GPU
	}{
		"the only one, others on it":             {lists: [2][]uint32{{4}}, at: 20_000, alone: true, want: "", gpus: 0},
		"the only one, others on it at first":    {lists: [2][]uint32{{4}}, at: 5000, alone: true, want: "GPU-a C", gpus: 1},
		"the only one, others and the job's":     {lists: [2][]uint32{{4, 10}}, at: 20_000, alone: true, want: "GPU-a A", gpus: 1},
		"the only one, and nobody on it":         {lists: [2][]uint32{{0}}, at: 20_000, alone: true, want: "GPU-a A", gpus: 1},
		"the only one, and it is not the rank's": {says: "GPU-c", alone: true, want: "", gpus: 0},
		"listed on the second":                   {lists: [2][]uint32{{4}, {10}}, at: 5000, want: "GPU-b A", gpus: 1},
		"listed on both":                         {lists: [2][]uint32{{10}, {10}}, at: 5000, want: "GPU-a C", gpus: 2},
		"listed on none":                         {lists: [2][]uint32{{0}, {0}}, at: 20_000, want: "GPU-a C", gpus: 1},
		"others on the first":                    {lists: [2][]uint32{{4}, {0}}, at: 20_000, want: "", gpus: 1},
		"others on both":                         {lists: [2][]uint32{{4}, {5}}, at: 20_000, want: "", gpus: 0},
		"a child of the job on the first":        {lists: [2][]uint32{{child}, {0}}, at: 20_000, want: "GPU-a C", gpus: 1},
		"others, and it may not be there yet":    {lists: [2][]uint32{{4}, {0}}, at: 5000, want: "GPU-a C", gpus: 1},
		"others, and pids are not its own":       {lists: [2][]uint32{{4}, {0}}, at: 20_000, inside: true, want: "GPU-a C", gpus: 1},
		"says another":                           {says: "GPU-c", want: "", gpus: 0},
		"says the one a slice is cut from":       {says: "GPU-p", parent: "GPU-p", want: "GPU-a A", gpus: 1},
	} {
		x := newTape(t)
		x.observe(30_000)
		gpus := []recording.GPUNote{{UUID: "GPU-a", Parent: c.parent, Grade: "A"}, {UUID: "GPU-b", Grade: "A"}}
		if c.alone {
			gpus = gpus[:1]
		}
		agent := x.agent(gpus...)
		x.write(agent, recording.Process{Ref: uint16(recording.RoleChild), PID: child, Begin: at(0), End: at(1000)}.Encode())
		number, space := 0, uint64(0xEFFFFFFC)
		if c.inside {
			space = 4026533000
		}
		d := recording.Declaration{Producer: recording.ProducerMain, Host: "node0", PID: 10, Namespace: space, Rank: &number}
		if c.says != "" {
			d.GPUUUID = &c.says
		}
		id, err := x.Declare(d)
		if err != nil {
			t.Fatal(err)
		}
		x.train(id, 30_000, 100, 1)
		for ref, pids := range c.lists {
			for _, pid := range pids {
				x.write(agent, recording.GPUProcess{Ref: uint16(ref), Begin: at(0), End: at(c.at), PID: pid, Memory: recording.Unknown64}.Encode())
			}
		}
		r := x.run()
		got := ""
		for _, g := range r.GPUs {
			if len(g.Holders) > 0 {
				got = g.UUID + " " + string(g.Grade)
			}
		}
		if got != c.want || len(r.GPUs) != c.gpus {
			t.Errorf("%s: on %q, want %q; %d GPUs, want %d", name, got, c.want, len(r.GPUs), c.gpus)
		}
		if len(r.GPUs) == 0 && !strings.Contains(r.Quality.GPU.Why, "left out") {
			t.Errorf("%s: why no GPU: %q", name, r.Quality.GPU.Why)
		}
	}
}

// TestTwoNodes: monotonic clocks that began years apart are one time.
func TestTwoNodes(t *testing.T) {
	var nodes []recording.Reader
	for n := range 2 {
		x := newTape(t)
		x.SetManifest(recording.Manifest{Host: fmt.Sprint("node", n)})
		id := x.rank(7, n)
		shift := uint64(n) * 9e15
		for i := range 60 {
			begin := uint64(start+20*i*ms) + shift
			x.write(id, recording.Fetch{Flags: first(i), Enter: begin, Exit: begin + 5*ms, Batch: uint32(i), CPU: recording.Unknown64}.Encode())
			x.write(id, recording.Step{End: begin + 20*ms, Step: uint32(i + 1), CPU: recording.Unknown64}.Encode())
		}
		x.AddNote(id, recording.ClockNote{Monotonic: start + shift, Realtime: 1_700_000_000_000_000_000})
		nodes = append(nodes, x)
	}
	r, err := Run(nodes, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if wall := r.Job.WallSeconds.Or(0); !near(wall, 1.2, 1e-6) || r.Job.Ranks != 2 || r.Job.Steps != 60 || len(r.Nodes) != 2 {
		t.Errorf("%v s, %d ranks, %d steps, nodes %v", wall, r.Job.Ranks, r.Job.Steps, r.Nodes)
	}
	wants(t, "data wait share", r.Step.DataWaitShare, 0.25, 1e-9)
}

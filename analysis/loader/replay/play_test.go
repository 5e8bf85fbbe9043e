package replay

import (
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
)

// twice is a setup played by the twin, and what [Player.Play] should say of it.
func twice(s Setup, t Tape, batches int) Outcome {
	round := max(s.Workers, 1)
	settle := 2 * round * max(s.Prefetch, 1)
	batches = max(1, batches/round) * round
	x := twin{Setup: s, tape: t}
	d := x.run(settle + batches + 1)
	out := Outcome{Seconds: (d[settle+batches].enter - d[settle].enter) / float64(batches)}
	if s.Ahead > 0 {
		out.Seconds = (x.deviceEnds[settle+batches-1] - x.deviceEnds[settle-1]) / float64(batches)
	}
	for _, one := range d[settle : settle+batches] {
		out.Wait += (one.taken - one.enter) / float64(batches)
	}
	if s.Workers > 0 && s.JobCores > 0 && s.Crowded() {
		out.Seconds = math.Max(out.Seconds, (s.CPU*math.Max(1, s.Threads)+s.Main)/s.JobCores)
	}
	return out
}

func anySetup(r *rand.Rand) Setup {
	maybe := func(most float64) float64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return most * r.Float64()
	}
	s := Setup{Workers: r.IntN(7), Prefetch: 1 + r.IntN(4), OutOfOrder: r.IntN(4) == 0, Wait: maybe(60), CPU: maybe(60), Feed: maybe(20), Take: maybe(3),
		Outside: maybe(30), Ahead: r.IntN(3), Device: maybe(30)}
	if r.IntN(4) == 0 {
		s.Even = r.Float64()
	}
	if r.IntN(3) == 0 {
		s.Exclusive = s.Wait * r.Float64()
	}
	if r.IntN(2) == 0 {
		s.WorkerCores, s.JobCores = 0.5+4*r.Float64(), 0.5+4*r.Float64()
		s.Main, s.Threads = maybe(s.Outside), 1+2*r.Float64()
	}
	return s
}

func anyTape(r *rand.Rand) Tape {
	if r.IntN(5) == 0 {
		return nil
	}
	t := make(Tape, 11+r.IntN(30)) // fewer are the same time and again, and rounding decides which of two is first
	for i := range t {
		t[i] = Batch{r.Float32() + 0.1, r.Float32() * 3, 0.5 + r.Float32()}
	}
	return t.Level()
}

// The shortcuts are exact: the twin, which takes none, comes to the same batch by batch.
func TestTheTwinPlaysTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p Player
	kinds := map[string]int{}
	for range 600 {
		s, tape := anySetup(r), anyTape(r)
		got, want := p.Play(s, tape, 60), twice(s, tape, 60)
		if !near(got.Seconds, want.Seconds) || !near(got.Wait, want.Wait) {
			t.Fatalf("%+v with %d batches: %.6f s and %.6f s of wait, played slowly %.6f and %.6f", s, len(tape), got.Seconds, got.Wait, want.Seconds, want.Wait)
		}
		switch {
		case s.Crowded():
			kinds["crowded"]++
		case s.OutOfOrder:
			kinds["unordered"]++
		default:
			kinds["ordered"]++
		}
	}
	for _, kind := range []string{"crowded", "unordered", "ordered"} {
		if kinds[kind] < 50 {
			t.Errorf("only %d of the setups are %s", kinds[kind], kind)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*(1+math.Abs(b)) }

// By arithmetic, without the twin: constant times, one thing at a time.
func TestConstantTimes(t *testing.T) {
	var p Player
	for name, c := range map[string]struct {
		s    Setup
		step float64
	}{
		"no workers":                                {Setup{Wait: 40, Outside: 20}, 60},
		"one worker is too few":                     {Setup{Workers: 1, Prefetch: 2, Wait: 40, Outside: 15}, 40},
		"two workers are too few":                   {Setup{Workers: 2, Prefetch: 2, Wait: 40, Outside: 15}, 20},
		"three are enough":                          {Setup{Workers: 3, Prefetch: 2, Wait: 40, Outside: 15}, 15},
		"taking over is the training thread's":      {Setup{Workers: 4, Prefetch: 2, Wait: 40, Outside: 15, Take: 1}, 16},
		"feeding is beside the next build":          {Setup{Workers: 2, Prefetch: 2, Wait: 40, Feed: 30, Outside: 15}, 20},
		"feeding longer than a build":               {Setup{Workers: 2, Prefetch: 2, Wait: 40, Feed: 50, Outside: 15}, 25},
		"one link for all":                          {Setup{Workers: 8, Prefetch: 2, Wait: 32, Exclusive: 32, Outside: 12}, 32},
		"full cores":                                {Setup{Workers: 8, Prefetch: 2, CPU: 48, Outside: 10, WorkerCores: 2}, 24},
		"threads fill cores":                        {Setup{Workers: 2, Prefetch: 2, CPU: 48, Threads: 4, Outside: 10, WorkerCores: 2}, 96},
		"what the device has queued hides the wait": {Setup{Workers: 1, Prefetch: 2, Wait: 18, Outside: 5, Device: 20, Ahead: 1}, 20},
		"nothing hides it where the thread waits":   {Setup{Wait: 10, Outside: 20, Device: 20}, 30},
		"without workers, beside the device":        {Setup{Wait: 10, Outside: 5, Device: 20, Ahead: 1}, 20},
	} {
		if got := p.Play(c.s, nil, 200); math.Abs(got.Seconds-c.step) > 1e-9*c.step {
			t.Errorf("%s: a batch every %v, want %v", name, got.Seconds, c.step)
		}
	}
}

// TestQueuedBatchesHideAHostShareOfHalf: launches run ahead, the training thread waits half of the time, and the device
// lacks nothing.
func TestQueuedBatchesHideAHostShareOfHalf(t *testing.T) {
	var p Player
	out := p.Play(Setup{Workers: 1, Prefetch: 2, Wait: 20, Outside: 10, Device: 20.5, Ahead: 2}, nil, 200)
	if out.Starved > 1e-9 || math.Abs(out.Seconds-20.5) > 1e-9 || out.Wait > 0.55*out.Seconds {
		t.Errorf("%+v", out)
	}
}

// TestMoreIsNeverSlower: workers without contention, room in the queue, shorter parts, cores.
func TestMoreIsNeverSlower(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var p Player
	for range 400 {
		s, tape := anySetup(r), anyTape(r)
		s.Workers, s.Exclusive, s.OutOfOrder = max(1, s.Workers), 0, false // batches that overtake each other have anomalies
		s.WorkerCores, s.JobCores = 0, 0
		for what, change := range map[string]func(*Setup){
			"a longer queue": func(s *Setup) { s.Prefetch++ },
			"less waiting":   func(s *Setup) { s.Wait /= 2 },
			"less computing": func(s *Setup) { s.CPU /= 2 },
			"no hand-off":    func(s *Setup) { s.Feed, s.Take = 0, 0 },
			"less outside":   func(s *Setup) { s.Outside /= 2; s.Device /= 2 },
			"running ahead":  func(s *Setup) { s.Ahead = max(1, 2*s.Ahead); s.Device = min(s.Device, s.Outside) },
			"twice as many":  func(s *Setup) { s.Workers *= 2 },
		} {
			after := s
			if what == "running ahead" {
				s.Device = min(s.Device, s.Outside)
			}
			change(&after)
			const batches = 5040 // whole rounds of both
			before, got := p.Play(s, tape, batches).Seconds, p.Play(after, tape, batches).Seconds
			if slack := 0.004 * before; got > before+slack {
				t.Errorf("%s: %v → %v, %+v %v", what, before, got, s, tape)
			}
		}
	}
}

// TestNothingBeatsItsBounds: C, L/W, B/K and what is exclusive; and the time of a batch is its wait and the time outside.
func TestNothingBeatsItsBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var p Player
	for range 1000 {
		s := anySetup(r)
		s.Workers = max(1, s.Workers)
		out := p.Play(s, nil, 40*s.Workers)
		bounds := map[string]float64{
			"outside and take": s.Outside + s.Take, "workers": (s.Wait + s.CPU) / float64(s.Workers), "exclusive": s.Exclusive, "feeding": s.Feed / float64(s.Workers),
		}
		if s.Workers == 1 {
			bounds["exclusive"] = 0
		}
		if s.WorkerCores > 0 {
			bounds["cores"] = s.CPU * s.Threads / max(s.WorkerCores, s.Threads) // a build alone has a core for each thread
			if float64(s.Workers)*s.Threads > s.WorkerCores {
				bounds["cores"] = s.CPU * s.Threads / s.WorkerCores
			}
		}
		if s.Ahead > 0 {
			bounds["device"] = s.Device
		}
		for name, bound := range bounds {
			if out.Seconds < bound*(1-0.03)-1e-9 {
				t.Errorf("%s: a batch every %v, but it takes %v: %+v", name, out.Seconds, bound, s)
			}
		}
		if s.Ahead == 0 && !s.Crowded() && !near(out.Seconds, out.Wait+s.Outside) {
			t.Errorf("%v of wait and %v outside are not %v", out.Wait, s.Outside, out.Seconds)
		}
	}
}

// TestOrderIsKept, unless it need not be: then every batch is delivered once, and never later than it would be in order.
func TestOrderIsKept(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		s, tape := anySetup(r), anyTape(r)
		s.Workers = max(2, s.Workers)
		x := twin{Setup: s, tape: tape}
		seen := map[int]bool{}
		for i, d := range x.run(80) {
			if !s.OutOfOrder && d.batch != i && i < 79 {
				t.Fatalf("batch %d comes in place %d: %+v", d.batch, i, s)
			}
			if seen[d.batch] && i < 79 {
				t.Fatalf("batch %d comes twice: %+v", d.batch, s)
			}
			seen[d.batch] = true
		}
	}
}

// TestOneSlowWorker is the repro of pytorch#135409: worker k sleeps k/2 s. In order, each round takes as long as the slowest worker;
// out of order the others go on.
func TestOneSlowWorker(t *testing.T) {
	var p Player
	tape := Tape{{0.01, 1, 1}, {0.5, 1, 1}, {1, 1, 1}, {1.5, 1, 1}}
	s := Setup{Workers: 4, Prefetch: 2, Wait: 1}
	if got := p.Play(s, tape, 400).Seconds; !near(got, 1.5/4) {
		t.Errorf("in order a batch every %v", got)
	}
	s.OutOfOrder = true
	// The tape tells builds apart by their number, not by their worker, so the mix is spread over all: 4 workers, 0.7525 s a build.
	if got := p.Play(s, tape, 400).Seconds; got > 0.7525/4*1.02 {
		t.Errorf("out of order a batch every %v", got)
	}
}

// TestPrefetchEvensOut is the arithmetic of a published emulation: builds of 40 ms that vary by 80 %, C = 12 ms. Four workers take
// 14.55 ms with P = 2 and 12.3 ms with P = 8; no law of means sees a difference.
func TestPrefetchEvensOut(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	sigma := math.Sqrt(math.Log(1 + 0.8*0.8))
	tape := make(Tape, 4000)
	for i := range tape {
		tape[i] = Batch{float32(math.Exp(sigma * r.NormFloat64())), 1, 1}
	}
	tape.Level()
	var p Player
	s := Setup{Workers: 4, Prefetch: 2, Wait: 40, Outside: 12}
	two := p.Play(s, tape, 4000).Seconds
	s.Prefetch = 8
	eight := p.Play(s, tape, 4000).Seconds
	if math.Abs(two-14.55) > 0.03*14.55 || math.Abs(eight-12.31) > 0.03*12.31 {
		t.Errorf("P = 2: %.2f ms, P = 8: %.2f ms", two, eight)
	}
}

// TestNonsenseIsNoOutcome, and does not hang.
func TestNonsenseIsNoOutcome(t *testing.T) {
	var p Player
	for _, v := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		for _, s := range []Setup{{Workers: 2, Wait: v}, {Workers: 2, CPU: v, JobCores: 1}, {Workers: 2, CPU: 1, JobCores: v}, {Outside: v}} {
			if got := p.Play(s, nil, 10).Seconds; got == got {
				t.Errorf("%+v: %v", s, got)
			}
		}
	}
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for _, s := range []Setup{{Wait: 1}, {CPU: 1}, {Wait: 1, CPU: 1, OutOfOrder: true}} {
			s.Workers, s.Prefetch, s.CPU, s.Outside, s.JobCores = 3, 2, s.CPU+1, 1, 2
			tape := Tape{{1, 1, 1}, {1, v, 1}, {v, 1, 1}, {1, 1, 1}}
			for _, got := range []Outcome{p.Play(s, tape, 60), p.PlayTogether(s, []Lane{{tape, 1}, {nil, 1}}, 1, 60)} {
				if got.Seconds == got.Seconds && !math.IsInf(got.Seconds, 1) {
					t.Errorf("%+v over a tape of %v: %v", s, v, got)
				}
			}
		}
	}
	// Parts of very different size: a build must end although adding its time changes no clock.
	p.Play(Setup{Workers: 4, CPU: 1e-12, Outside: 1e6, JobCores: 1, Main: 1e6}, nil, 1000)
}

// TestReplayingAllocatesNothing once the player has its memory.
func TestReplayingAllocatesNothing(t *testing.T) {
	var p Player
	for _, s := range []Setup{{Outside: 1}, {Workers: 4, Wait: 1}, {Workers: 4, Wait: 1, OutOfOrder: true}, {Workers: 4, CPU: 1, JobCores: 1}} {
		if n := testing.AllocsPerRun(10, func() { p.Play(s, nil, 100) }); n > 0 {
			t.Errorf("%+v: %v allocations", s, n)
		}
	}
}

func FuzzPlay(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p Player
		s, tape := anySetup(r), anyTape(r)
		if got, want := p.Play(s, tape, 40), twice(s, tape, 40); !near(got.Seconds, want.Seconds) {
			t.Errorf("%+v: %v, played slowly %v", s, got, want)
		}
	})
}

// BenchmarkPlay's metric is by CPU time: the machine may be shared.
func BenchmarkPlay(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	tape := make(Tape, 512)
	for i := range tape {
		tape[i] = Batch{0.5 + r.Float32(), 0.5 + r.Float32(), 0.9 + 0.2*r.Float32()}
	}
	tape.Level()
	free := Setup{Workers: 8, Prefetch: 2, Wait: 0.03, CPU: 0.05, Feed: 0.001, Take: 0.001, Outside: 0.012}
	full, unordered := free, free
	full.WorkerCores, full.JobCores = 4, 4
	unordered.OutOfOrder = true
	many, asTheyCome, link := full, full, free
	many.Workers, asTheyCome.OutOfOrder, link.Exclusive = 64, true, 0.01
	for _, c := range []struct {
		name string
		s    Setup
	}{
		{"CoreForEach", free}, {"OutOfOrder", unordered},
		{"FullCores", full}, {"FullCores/workers=64", many}, {"FullCores/OutOfOrder", asTheyCome}, {"OneLink", link},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p Player
			p.Play(c.s, tape, 512)
			b.ReportAllocs()
			b.ResetTimer()
			batches, before := 0, cpuSeconds()
			for b.Loop() {
				p.Play(c.s, tape, 1<<14)
				batches += 1 << 14
			}
			b.ReportMetric(float64(batches)/(cpuSeconds()-before)/1e6, "Mbatches/cpu-s")
		})
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

package loader

import (
	"math"
	"math/rand/v2"
	"testing"
)

// twin is the slow, obviously correct counterpart of the law: it plays PyTorch's loader event by event with constant times.
//
// The rules are those of torch/utils/data/dataloader.py (1.13 to 2.9): P·W indices are sent ahead, round-robin; a new one is sent
// for every batch delivered; batches are delivered in order. A build is first off the CPU (alone on the exclusive resource for
// `exclusive` of it), then on it; builds on the CPU share K cores, none gets more than one.
type twin struct {
	w, p                   int
	exclusive, off, cpu, c float64
	cores                  float64
	now, lockUntil         float64
	task                   []int     // batch a worker builds, −1 = idle
	waiting, burning       []float64 // when its off-CPU part ends; CPU seconds left
	queue                  [][]int   // indices sent to a worker
	built                  map[int]bool
	sent, delivered        int
	stepEnds               float64
	ends                   []float64 // of each step
}

func (s *twin) run(steps int) []float64 {
	s.task, s.waiting, s.burning = make([]int, s.w), make([]float64, s.w), make([]float64, s.w)
	s.queue, s.built = make([][]int, s.w), map[int]bool{}
	for i := range s.task {
		s.task[i] = -1
	}
	for range s.w * s.p {
		s.send()
	}
	for len(s.ends) < steps {
		s.startBuilds()
		s.deliver()
		s.advance(s.next())
	}
	return s.ends
}

func (s *twin) send() {
	i := s.sent % s.w
	s.queue[i] = append(s.queue[i], s.sent)
	s.sent++
}

func (s *twin) startBuilds() {
	for i := range s.task {
		if s.task[i] >= 0 || len(s.queue[i]) == 0 {
			continue
		}
		s.task[i], s.queue[i] = s.queue[i][0], s.queue[i][1:]
		free := math.Max(s.now, s.lockUntil)
		if s.exclusive > 0 {
			s.lockUntil = free + s.exclusive
		} else {
			free = s.now
		}
		s.waiting[i], s.burning[i] = free+s.exclusive+s.off, s.cpu
	}
}

// deliver hands the next batch over if it is built and the training thread is back in next().
func (s *twin) deliver() {
	for s.built[s.delivered] && s.stepEnds <= s.now {
		delete(s.built, s.delivered)
		s.delivered++
		s.send()
		s.stepEnds = s.now + s.c
		s.ends = append(s.ends, s.stepEnds)
		s.startBuilds()
	}
}

// share is the CPU that each computing build gets.
func (s *twin) share() float64 {
	n := 0
	for i := range s.task {
		if s.onCPU(i) {
			n++
		}
	}
	return math.Min(1, s.cores/math.Max(1, float64(n)))
}

func (s *twin) onCPU(i int) bool { return s.task[i] >= 0 && s.waiting[i] <= s.now+1e-12 }

func (s *twin) next() float64 {
	at := math.Inf(1)
	if s.stepEnds > s.now {
		at = s.stepEnds
	}
	for i := range s.task {
		switch {
		case s.onCPU(i):
			at = math.Min(at, s.now+s.burning[i]/s.share())
		case s.task[i] >= 0:
			at = math.Min(at, s.waiting[i])
		}
	}
	return at
}

func (s *twin) advance(at float64) {
	rate := s.share()
	for i := range s.task {
		if s.onCPU(i) {
			s.burning[i] -= rate * (at - s.now)
		}
	}
	s.now = at
	for i := range s.task {
		if s.onCPU(i) && s.burning[i] <= 1e-9 {
			s.built[s.task[i]], s.task[i] = true, -1
		}
	}
}

// steady is the mean step of the second half, over whole cycles of W.
func steady(ends []float64, w int) float64 {
	n := len(ends) / 2 / w * w
	last := len(ends) - 1
	return (ends[last] - ends[last-n]) / float64(n)
}

func (s *twin) law() Law {
	return Law{Workers: s.w, Fetches: 1, Compute: s.c, Off: s.exclusive + s.off, CPU: s.cpu, Work: s.cpu, Shared: s.exclusive,
		WorkerCores: s.cores, JobCores: math.Inf(1)}
}

// TestTwinExact: with constant times and one resource the law is the loader.
func TestTwinExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]func(*twin){
		"latency":   func(s *twin) { s.off = 1 + 99*r.Float64() },
		"exclusive": func(s *twin) { s.exclusive = 1 + 30*r.Float64() },
		"cpu":       func(s *twin) { s.cpu = 1 + 99*r.Float64() },
	}
	for name, set := range kinds {
		for range 150 {
			s := &twin{w: 1 + r.IntN(8), p: 1 + r.IntN(3), c: 1 + 39*r.Float64(), cores: float64(1 + r.IntN(4))}
			set(s)
			want := s.law().Step()
			if got := steady(s.run(60*s.w), s.w); math.Abs(got-want) > 0.01*want {
				t.Errorf("%s W=%d P=%d K=%v C=%.1f off=%.1f excl=%.1f cpu=%.1f: played %.2f, law %.2f",
					name, s.w, s.p, s.cores, s.c, s.off, s.exclusive, s.cpu, got, want)
			}
		}
	}
}

// TestTwinBound: with waiting and computing mixed the law is a lower bound; off by 40 % at worst and by little on average.
func TestTwinBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sum := 0.0
	for range 300 {
		s := &twin{w: 1 + r.IntN(8), p: 2, c: 1 + 39*r.Float64(), cores: float64(1 + r.IntN(4)),
			off: 50 * r.Float64(), cpu: 50 * r.Float64(), exclusive: 10 * r.Float64()}
		want := s.law().Step()
		got := steady(s.run(60*s.w), s.w)
		if got < 0.99*want || got > 1.45*want {
			t.Errorf("%+v: played %.2f, law %.2f", s.law(), got, want)
		}
		sum += got / want
	}
	if mean := sum / 300; mean > 1.06 {
		t.Errorf("the law is %.0f %% short on average", 100*(mean-1))
	}
}

// FuzzLaw: more of a good thing never makes a step longer, and no step beats C.
func FuzzLaw(f *testing.F) {
	f.Add(uint8(2), 8.0, 48.0, 12.0, 1.0, 2.0, 1.0)
	f.Fuzz(func(t *testing.T, w uint8, off, cpu, c, shared, k, h float64) {
		for _, v := range []float64{off, cpu, c, shared, k, h} {
			if !(v >= 0 && v < 1e9) {
				t.Skip()
			}
		}
		l := Law{Workers: 1 + int(w), Fetches: 1, Compute: c, Handoff: h, Off: off, CPU: cpu, Work: cpu, Shared: math.Min(shared, off),
			WorkerCores: 0.1 + k, JobCores: 0.1 + k}
		step := l.Step()
		if step < c {
			t.Errorf("%+v: step %v beats C", l, step)
		}
		better := []func(*Law){
			func(l *Law) { l.Workers++ },
			func(l *Law) { l.WorkerCores++; l.JobCores++ },
			func(l *Law) { l.Off /= 2; l.Shared /= 2 },
			func(l *Law) { l.CPU /= 2; l.Work /= 2 },
			func(l *Law) { l.Handoff = 0 },
		}
		for i, b := range better {
			after := l
			b(&after)
			if after.Step() > step {
				t.Errorf("%+v: change %d makes the step longer: %v → %v", l, i, step, after.Step())
			}
		}
		if n, ok := l.Enough(0); ok {
			if d := l.withWorkers(n).Step() - l.withWorkers(n+1000).Step(); d > 1e-9*step {
				t.Errorf("%+v: %d workers leave %v to gain", l, n, d)
			}
		}
	})
}

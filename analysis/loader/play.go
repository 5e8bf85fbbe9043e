package loader

import (
	"math"
	"math/rand/v2"

	"github.com/datawait/datawait/analysis/loader/replay"
)

// film is the recorded batches and the means to replay them. Models that are copied share it.
type film struct {
	tape   replay.Tape
	player replay.Player
	known  map[Law]replay.Outcome // of the whole tape: the same configuration is asked for again and again
	draws  map[int][]float64      // of the configuration that ran: seconds of a step, by number of draws
	lanes  []replay.Lane          // this rank and the peers it waits for; fewer than two if it is replayed alone
	spare  []replay.Lane
}

// How many batches a replay covers: of the tape as it is, and of one that is drawn anew.
const (
	longest      = 1024 // of a tape; what a longer one would add is less than what C and L may be off
	drawn        = 256
	drawnCrowded = 128 // where builds share cores: event by event
	together     = 4   // ranks
	drawnRanks   = 64  // for each of several ranks
	longRanks    = 256
	alike        = 64 // at least, where the batches are all alike and no tape says more
)

// newFilm takes the recorded batches over; without any, it makes batches that vary as much as the recorded ones did.
func newFilm(p Parameters) *film {
	f := &film{known: map[Law]replay.Outcome{}, draws: map[int][]float64{}}
	switch cv := p.Batch.CV.Or(0); {
	case len(p.Tape) > 0:
		f.tape = kept(p.Tape)
	case cv > 0.01:
		f.tape = uneven(math.Min(cv, 3))
	}
	return f
}

// kept is the batches that are replayed of a tape.
func kept(t replay.Tape) replay.Tape {
	return append(replay.Tape{}, t[:min(len(t), longest)]...).Level()
}

// couple has the replay wait for peers at the end of every step. C must be of steps that nobody waited for: inferred from live steps it
// holds what this rank waits for others already.
func (f *film) couple(p Parameters, cached bool) {
	if !cached || len(f.tape) == 0 || len(p.Peers) == 0 {
		return
	}
	f.lanes = []replay.Lane{{Tape: f.tape, Build: 1}}
	for _, o := range p.Peers[:min(len(p.Peers), together-1)] {
		f.lanes = append(f.lanes, replay.Lane{Tape: kept(o.Tape), Build: o.Build})
	}
}

// forgetOutside forgets how long single steps took outside next(). Where launches run ahead that is no time of the device: a thread that waits
// once until the queue is empty, or full, would else be replayed as one batch that takes the device so long.
func (f *film) forgetOutside() {
	forget := func(t replay.Tape) {
		for i := range t {
			t[i].Outside = 1
		}
	}
	forget(f.tape)
	for _, l := range f.lanes {
		forget(l.Tape)
	}
}

// run replays one rank, or several that wait for one another.
func (f *film) run(l Law, lanes []replay.Lane, batches int) replay.Outcome {
	var out replay.Outcome
	if len(lanes) > 1 {
		out = f.player.PlayTogether(l.setup(), lanes, int(math.Round(l.Fetches)), batches)
	} else {
		out = f.player.Play(l.setup(), lanes[0].Tape, batches)
	}
	out.Seconds *= l.Fetches
	out.Wait *= l.Fetches
	out.Starved *= l.Fetches
	return out
}

// uneven is batches whose builds vary by a coefficient of variation, as a lognormal does.
func uneven(cv float64) replay.Tape {
	r := rand.New(rand.NewPCG(1, 1))
	sigma := math.Sqrt(math.Log(1 + cv*cv))
	t := make(replay.Tape, longest)
	for i := range t {
		times := float32(math.Exp(sigma * r.NormFloat64()))
		t[i] = replay.Batch{Wait: times, CPU: times, Outside: 1}
	}
	return t.Level()
}

// play replays the whole tape in a configuration. Seconds are per step.
func (f *film) play(l Law) replay.Outcome {
	if out, ok := f.known[l]; ok {
		return out
	}
	n := len(f.tape)
	if n == 0 {
		n = max(alike, 8*l.Workers)
	}
	lanes := f.lanes
	if len(lanes) > 1 {
		n = min(n, longRanks)
	} else {
		lanes = []replay.Lane{{Tape: f.tape}}
	}
	out := f.run(l, lanes, n)
	if len(f.known) < 1<<12 {
		f.known[l] = out
	}
	return out
}

// draw draws the batches of the tapes anew, for what ran and for what it is changed to. They last until the next draw.
func (f *film) draw(ran Law, r *rand.Rand) (lanes []replay.Lane, batches int) {
	if len(f.tape) == 0 {
		return []replay.Lane{{}}, max(alike, 4*ran.Workers)
	}
	from := f.lanes
	batches = min(drawn, max(len(f.tape), alike))
	switch s := ran.setup(); {
	case len(from) > 1:
		batches = min(drawnRanks, batches)
	case s.Crowded():
		batches = min(drawnCrowded, batches)
	}
	if len(from) == 0 {
		from = []replay.Lane{{Tape: f.tape, Build: 1}}
	}
	if len(f.spare) == 0 {
		f.spare = make([]replay.Lane, len(from))
		for i := range f.spare {
			f.spare[i] = replay.Lane{Tape: make(replay.Tape, drawn), Build: from[i].Build}
		}
	}
	for i := range f.spare {
		f.spare[i].Tape = from[i].Tape.Resample(f.spare[i].Tape[:batches], ran.Workers, r)
	}
	return f.spare, batches
}

// setup is a configuration as the replay takes it.
func (l Law) setup() replay.Setup {
	f := positive(some(l.Fetches), 1)
	s := replay.Setup{
		Workers: l.Workers, Prefetch: l.Prefetch, OutOfOrder: l.OutOfOrder, Even: l.Even,
		Wait: l.Off + l.Queue + math.Max(0, l.Stretch-1)*l.CPU, Exclusive: math.Min(l.Shared, l.Off), CPU: l.CPU, Threads: 1,
		Outside: l.Compute / f, Main: l.MainCPU / f, WorkerCores: limit(l.WorkerCores), JobCores: limit(l.JobCores),
	}
	if l.CPU > 0 {
		s.Threads = l.Work / l.CPU
	}
	if l.Workers > 0 {
		s.Take, s.Feed = l.Handoff, l.Feed
	}
	if l.Ahead > 0 {
		s.Ahead, s.Device, s.Outside = l.Ahead, s.Outside, math.Min(l.Outside, l.Compute)/f
	}
	return s
}

// limit is a number of cores, 0 for no limit.
func limit(cores float64) float64 {
	if math.IsInf(cores, 1) {
		return 0
	}
	return cores
}

// Replay returns what a step takes in a configuration, by the replay of the recorded batches.
func (m Model) Replay(l Law) float64 {
	if m.film == nil {
		return l.Bound()
	}
	return m.film.play(l).Seconds
}

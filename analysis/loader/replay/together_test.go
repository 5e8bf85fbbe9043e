package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// textbook is the recursion of ranks that have a core for each build, written down as it stands in the literature: when an index is
// sent, when its build begins and ends, when the batch is taken and when the step is over on all ranks.
func textbook(s Setup, lanes []Lane, every, settle, batches int) (seconds, wait float64) {
	n := settle + batches
	begin := make([]float64, len(lanes))
	taken, fed := make([][]float64, len(lanes)), make([][]float64, len(lanes))
	free := make([][]float64, len(lanes))
	for r := range lanes {
		free[r], fed[r] = make([]float64, s.Workers), make([]float64, s.Workers)
	}
	var ends []float64
	waited := 0.0
	for b := range n {
		for r, l := range lanes {
			sent := 0.0
			if b >= s.Workers*s.Prefetch {
				sent = taken[r][b-s.Workers*s.Prefetch]
			}
			row, w := l.Tape[b%len(l.Tape)], b%s.Workers
			end := max(sent, free[r][w]) + l.Build*(s.Wait*float64(row.Wait)+s.CPU*float64(row.CPU))
			arrives := max(end, fed[r][w]) + s.Feed
			free[r][w], fed[r][w] = end, arrives
			at := max(begin[r], arrives) + s.Take
			if r == 0 && b >= settle {
				waited += at - begin[r]
			}
			taken[r] = append(taken[r], at)
			begin[r] = at + s.Outside*float64(row.Outside)
		}
		if (b+1)%every == 0 {
			last := slices.Max(begin)
			for r := range begin {
				begin[r] = last
			}
		}
		ends = append(ends, begin[0])
	}
	return (ends[n-1] - ends[settle-1]) / float64(batches), waited / float64(batches)
}

// TestRanksWaitForOneAnother as the textbook has it.
func TestRanksWaitForOneAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var p Player
	for range 100 {
		s := Setup{Workers: 1 + r.IntN(4), Prefetch: 1 + r.IntN(3), Wait: 40 * r.Float64(), CPU: 20 * r.Float64(), Feed: 5 * r.Float64(), Take: r.Float64(), Outside: 15 * r.Float64()}
		lanes := make([]Lane, 2+r.IntN(3))
		for i := range lanes {
			for lanes[i].Tape = anyTape(r); len(lanes[i].Tape) == 0; lanes[i].Tape = anyTape(r) {
			}
			lanes[i].Build = 0.5 + r.Float64()
		}
		every := 1 + r.IntN(2)
		got := p.PlayTogether(s, lanes, every, 60)
		seconds, wait := textbook(s, lanes, every, 2*s.Workers*s.Prefetch, max(1, 60/s.Workers)*s.Workers)
		if !near(got.Seconds, seconds) || !near(got.Wait, wait) {
			t.Fatalf("%+v of %d ranks: %v s, %v of wait; by the book %v and %v", s, len(lanes), got.Seconds, got.Wait, seconds, wait)
		}
	}
}

// TestTheSlowestRankSetsThePace, and ranks that are as fast on average are slower together than each would be alone.
func TestTheSlowestRankSetsThePace(t *testing.T) {
	var p Player
	s := Setup{Workers: 2, Prefetch: 2, Wait: 16, Outside: 20} // S28: 80 ms of builds on rank 1, 16 on rank 0
	out := p.PlayTogether(s, []Lane{{Build: 1}, {Build: 5}}, 1, 200)
	if !near(out.Seconds, 40) || out.Wait > 1e-9 {
		t.Errorf("rank 0: %+v", out)
	}
	r := rand.New(rand.NewPCG(13, 14))
	lanes := make([]Lane, 4)
	for i := range lanes {
		for range 500 {
			lanes[i].Tape = append(lanes[i].Tape, Batch{float32(r.ExpFloat64()), 1, 1})
		}
		lanes[i].Tape.Level()
		lanes[i].Build = 1
	}
	s.Wait = 36
	alone := p.Play(s, lanes[0].Tape, 500).Seconds
	if together := p.PlayTogether(s, lanes, 1, 500).Seconds; together < 1.1*alone {
		t.Errorf("alone %v, four together %v", alone, together)
	}
}

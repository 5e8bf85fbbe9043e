package replay

import "math"

// Lane is one rank of a job whose ranks wait for one another: its own batches, and its own builds.
type Lane struct {
	Tape  Tape
	Build float64 // how many times as long its builds take as those of the setup
}

// lane is a rank under way.
type lane struct {
	setup    Setup
	tape     Tape
	row      int // of the tape: the batch that is trained on next
	crew     crew
	consumer consumer
	ends     []float64
}

// PlayTogether plays ranks that wait for one another after every so many batches, as a collective has it: the next step begins on all of
// them when the last one is done. Each has workers, a queue and cores of its own. The outcome is that of the first lane.
//
// Setups without workers, or of one lane, are played alone.
func (p *Player) PlayTogether(setup Setup, lanes []Lane, every, batches int) Outcome {
	if len(lanes) == 0 {
		return p.Play(setup, nil, batches)
	}
	setup.Prefetch = max(setup.Prefetch, 1)
	if len(lanes) == 1 || setup.Workers == 0 || !setup.sane() {
		return p.Play(setup, lanes[0].Tape, batches)
	}
	for len(p.lanes) < len(lanes) {
		p.lanes = append(p.lanes, &lane{})
	}
	all := p.lanes[:len(lanes)]
	for i, l := range all {
		l.begin(setup, lanes[i])
	}
	every = max(every, 1)
	round := setup.Workers
	batches = max(1, batches/round) * round
	settle, start := 2*round*setup.Prefetch, 0.0
	for b := range settle + batches {
		if b == settle {
			for _, l := range all {
				l.consumer.begin()
				l.crew.queued = 0
			}
			start = all[0].consumer.trained()
		}
		for _, l := range all {
			if !l.step() {
				return nothing
			}
		}
		if (b+1)%every == 0 {
			wait(all)
		}
	}
	return all[0].outcome(start, batches)
}

func (l *lane) begin(s Setup, from Lane) {
	if l.tape = from.Tape; len(l.tape) == 0 {
		l.tape = alike
	}
	s.Wait, s.Exclusive, s.CPU = s.Wait*from.Build, s.Exclusive*from.Build, s.CPU*from.Build
	l.setup, l.row = s, 0
	l.crew.reset(&l.setup, l.tape)
	for range s.Prefetch {
		for i := range s.Workers {
			l.crew.ask(i)
		}
	}
	l.ends = grown(l.ends, s.Ahead)
	l.consumer = consumer{setup: &l.setup, ends: l.ends}
}

// wait has every rank wait for the last.
func wait(all []*lane) {
	now, device := 0.0, 0.0
	for _, l := range all {
		now, device = max(now, l.consumer.now), max(device, l.consumer.device)
	}
	for _, l := range all {
		if l.setup.Ahead == 0 {
			l.consumer.now = now
		} else {
			l.consumer.device = device
		}
	}
}

// step trains on the next batch; false if none comes.
func (l *lane) step() bool {
	k, c := &l.crew, &l.consumer
	k.rates = k.busy
	k.advance(c.now)
	k.rates = k.idle
	who, arrives := k.await()
	if math.IsInf(arrives, 1) {
		return false
	}
	taken := c.step(arrives, l.tape[l.row].Outside)
	if l.row++; l.row == len(l.tape) {
		l.row = 0
	}
	k.advance(taken)
	k.deliver(who)
	return true
}

func (l *lane) outcome(start float64, batches int) Outcome {
	out := l.consumer.outcome(start, batches)
	if s := &l.setup; s.JobCores > 0 { // the training process's own part of the cores is taken in any case
		out.Seconds = max(out.Seconds, (s.CPU*max(s.Threads, 1)+s.Main)/s.JobCores)
	}
	out.Queued = l.crew.queued / float64(batches)
	return out
}

package live

import (
	"slices"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
)

// training is what is remembered of a training process from one record to the next.
//
//	fetches    [first]      [wait]        [wait]                 [validation]   [first]
//	steps             s            s             s                                     s
//	Training          |-----------|-------------|                                      |---
//
// Training goes from the end of one fetch to the end of the next. What begins an epoch is counted apart, and what lies between a
// fetch and the next is left out where something else than training happened in it.
type training struct {
	began     uint64               // ns, the first fetch or step that was seen; 0 = none was
	exit      uint64               // ns, end of the fetch before; 0 = what follows is not an interval of training
	aside     uint64               // ns of checkpoints since then
	step      uint64               // ns, end of the step before; 0 as with exit
	stepped   int                  // steps of an optimizer; without any a fetch is a step
	fetches   int                  // before that was seen
	iterators map[iteration]uint64 // made, and nothing fetched from them yet: ns it took
	unclocked []clocked            // fetches of which the device's clock has not told yet, in order
	unseen    int                  // waits in a row of which no clock told
	claims    map[int]claim        // workers, by pid
	sent      map[batchKey]uint64  // ns, when batches were sent that were not fetched yet
	awaited   []awaited            // fetches whose batch was not told of yet, in order
}

// iteration is one iterator of a loader.
type iteration struct {
	loader uint16
	epoch  uint32
}

// batchKey names a batch of a process.
type batchKey struct {
	iteration
	batch uint32
}

// clocked is a wait for whose exposure the device's clock may still tell.
type clocked struct {
	seq  uint32
	wait uint64 // ns
}

// awaited is a wait whose batch may still be told of.
type awaited struct {
	batchKey
	enter, exit uint64 // ns
}

// claim says for which iterator a worker was started.
type claim struct {
	loader uint16
	epoch  uint32
}

// Bounds of what is remembered of a process.
const (
	mostUnclocked = 64                      // fetches that a device clock may be late, as in the ledger
	mostIterators = 64                      // made and never fetched from
	mostClaims    = 4096                    // workers
	mostSent      = 4096                    // batches
	patience      = 30e9                    // ns until a batch that was not told of is given up
	fewFetches    = 64                      // without a step: then a fetch is one
	longest       = ledger.DefaultIdleAfter // ns: what takes longer than that is no step
)

func newTraining() *training {
	return &training{iterators: map[iteration]uint64{}, claims: map[int]claim{}, sent: map[batchKey]uint64{}}
}

// fold counts one record of a training process.
func (s *stream) fold(r *recording.Record) {
	t := s.training
	switch r.Kind() {
	case recording.KindFetch:
		s.fetch(r.Seq(), r.Fetch())
	case recording.KindStep:
		s.stepped(r.Step())
	case recording.KindExposed:
		t.exposed(&s.rank.Rank, r.Exposed())
	case recording.KindIterator:
		if v := r.Iterator(); v.Begin <= v.End && v.End < recording.Latest {
			if len(t.iterators) >= mostIterators { // of loops that were left before their first fetch
				clear(t.iterators)
			}
			t.iterators[iteration{v.Ref, v.Epoch}] = v.End - v.Begin
		}
	case recording.KindWorker:
		if v := r.Worker(); v.PID > 0 {
			if len(t.claims) >= mostClaims { // of workers that never had a ring
				clear(t.claims)
			}
			t.claims[int(v.PID)] = claim{v.Ref, v.Epoch}
		}
	case recording.KindMark:
		if v := r.Mark(); recording.MarkCode(v.Ref) == recording.MarkCheckpoint && v.Begin <= v.End && v.End < recording.Latest {
			more(&s.rank.Checkpoint, v.End-v.Begin)
			more(&t.aside, v.End-v.Begin)
			t.step = 0
		}
	case recording.KindBatch, recording.KindCost, recording.KindIO:
		s.build(r)
	}
}

func (s *stream) fetch(seq uint32, f recording.Fetch) {
	const other = recording.FetchNested | recording.FetchOffThread | recording.FetchCached | recording.FetchDiscarded
	if f.Enter > f.Exit || f.Exit >= recording.Latest || f.Flags&other != 0 {
		return
	}
	t, r := s.training, &s.rank.Rank
	wait := f.Exit - f.Enter
	s.saw(f.Exit)
	made := uint64(0)
	if f.Flags&recording.FetchFirst != 0 {
		key := iteration{f.Ref, f.Epoch}
		made = t.iterators[key]
		delete(t.iterators, key)
	}
	before, aside := t.exit, t.aside
	t.aside = 0
	switch {
	case f.Flags&recording.FetchNoGrad != 0:
		more(&r.Validation, wait+made)
		t.exit, t.step = 0, 0
	case f.Flags&recording.FetchFirst != 0:
		r.Epochs++
		more(&r.EpochStart, wait+made)
		t.exit, t.step = f.Exit, 0
	default:
		more(&r.Wait, wait)
		more(&r.Training, wait)
		if between := f.Enter - min(before, f.Enter); before != 0 && between < longest {
			more(&r.Training, between-min(between, aside))
		}
		t.exit = f.Exit
		t.unclocked = append(t.unclocked, clocked{seq, wait})
		t.unseen++
		if len(t.unclocked) > mostUnclocked {
			t.unclocked = slices.Delete(t.unclocked, 0, 1)
		}
		if f.Batch != recording.Unknown32 && len(t.awaited) < mostSent {
			t.awaited = append(t.awaited, awaited{batchKey{iteration{f.Ref, f.Epoch}, f.Batch}, f.Enter, f.Exit})
		}
	}
	if f.Flags&(recording.FetchNoGrad|recording.FetchEnd|recording.FetchError) != 0 {
		return
	}
	r.Fetches++
	if t.fetches++; t.stepped == 0 && t.fetches > fewFetches && before != 0 && f.Flags&recording.FetchFirst == 0 {
		s.time(f.Exit - min(before, f.Exit))
	}
}

// stepped counts an optimizer step.
func (s *stream) stepped(v recording.Step) {
	if v.End >= recording.Latest {
		return
	}
	t := s.training
	s.saw(v.End)
	s.rank.Steps++
	if t.step != 0 && v.End > t.step {
		s.time(v.End - t.step)
	}
	t.step = v.End
	t.stepped++
}

// time counts the length of one step.
func (s *stream) time(ns uint64) {
	if ns < longest {
		s.node.job(s.rank.Tenant).StepTimes.Add(float64(ns) / 1e9)
	}
}

// saw notes a sign of life.
func (s *stream) saw(t uint64) {
	s.seen = max(s.seen, t)
	if s.training.began == 0 {
		s.training.began = t
	}
	s.rank.LastMoved = max(s.rank.LastMoved, min(t, s.node.now+s.node.options.Lag))
}

// exposed counts what the device's clock says of one fetch.
func (t *training) exposed(r *Rank, e recording.Exposed) {
	for i, f := range t.unclocked {
		if f.seq == e.Fetch {
			t.unclocked = slices.Delete(t.unclocked, 0, i+1) // the clock tells in order
			t.unseen = 0
			if e.Idle < recording.Latest {
				more(&r.WaitClocked, f.wait)
				more(&r.Exposed, min(e.Idle, f.wait))
			}
			return
		}
	}
}

// handOff counts how much of the waits came after the batch had been sent, as far as their batches have been told of.
//
//	enter      sent         exit
//	  |---------|-- hand-off -|
func (s *stream) handOff(now uint64) {
	if !s.main() || len(s.training.awaited) == 0 {
		return
	}
	t := s.training
	t.awaited = slices.DeleteFunc(t.awaited, func(a awaited) bool {
		sent, ok := t.sent[a.batchKey]
		if ok {
			delete(t.sent, a.batchKey)
			more(&s.rank.HandOffSeen, a.exit-a.enter)
			more(&s.rank.HandOff, a.exit-min(max(sent, a.enter), a.exit))
		}
		return ok || now-min(a.exit, now) > patience
	})
}
